//! The checks of shields, of lists of users, and of the audiences of items.

use feedgate_common::doctor::Check;
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;

use crate::archive::tables::{Audiences, Edges, Items, ListHeads, ListPlace, Listed, Listing, ShieldList, ShieldsUp};
use crate::view::{Read, View};

pub(super) fn shields(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<ShieldsUp>(..) {
        let ((owner, shield, other), number) = row?;
        check.look();
        let of = || format!("the {shield:?} of user {} against {}", owner.0, other.0);
        let listed = view.get::<ShieldList>(&(owner, shield, number))?.is_some_and(|line| line.user == other);
        check.expect(listed, || format!("{} is in no list", of()));
        let (outwards, inwards) = shield.bits();
        for (edge, bits) in [((owner, other), outwards), ((other, owner), inwards)] {
            let held = view.get::<Edges>(&edge)?.map(|row| row.held.shields).unwrap_or_default();
            let same = bits == Shields::default() || held.any_of(bits);
            check.expect(same, || {
                format!("{} is up, and the edge from {} to {} says otherwise", of(), edge.0.0, edge.1.0)
            });
        }
    }
    for row in view.scan::<ShieldList>(..) {
        let ((owner, shield, number), line) = row?;
        check.look();
        let up = view.get::<ShieldsUp>(&(owner, shield, line.user))? == Some(number);
        check.expect(up, || format!("a {shield:?} of user {} against {} is listed and not up", owner.0, line.user.0));
    }
    Ok(())
}

pub(super) fn lists(view: &View, check: &mut Check) -> Result<()> {
    let mut members = 0;
    for row in view.scan::<Listed>(..) {
        let ((owner, ListPlace { list, member }), _) = row?;
        check.look();
        members += 1;
        check.expect(view.has::<Listing>(&(member, owner, list.clone()))?, || {
            format!("user {} is on list {list:?} of user {}, and is not known to be", member.0, owner.0)
        });
        check.expect(view.has::<ListHeads>(&(owner, list.clone()))?, || {
            format!("list {list:?} of user {} has members and no count", owner.0)
        });
    }
    for row in view.scan::<Listing>(..) {
        let ((member, owner, list), ()) = row?;
        check.look();
        let there = view.has::<Listed>(&(owner, ListPlace { list: list.clone(), member }))?;
        check.expect(there, || {
            format!("user {} is known to be on list {list:?} of user {}, and is not", member.0, owner.0)
        });
    }
    let mut counted = 0;
    for row in view.scan::<ListHeads>(..) {
        let (_, members) = row?;
        check.look();
        counted += members;
    }
    check.expect(members == counted, || format!("lists have {members} members, and {counted} are counted"));
    Ok(())
}

pub(super) fn audiences(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<Audiences>(..) {
        let (item, readers) = row?;
        check.look();
        check.expect(view.has::<Items>(&item)?, || format!("the audience of item {item} is of no item"));
        check.expect(readers.0.is_sorted(), || format!("the audience of item {item} is not in order"));
    }
    Ok(())
}
