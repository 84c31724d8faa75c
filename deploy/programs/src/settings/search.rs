//! The settings of search: which fields of items hold the text that is searched.

use compact_str::CompactString;
use feedgate_common::search::TextFields;
use serde::{Deserialize, Serialize};

/// The settings of search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Search {
    /// The fields of the body whose strings are the text of an item. If the list is empty, search is off.
    pub(crate) fields: Vec<CompactString>,
}

impl Search {
    /// The fields that are searched, or what is wrong with them; `None` if search is off.
    pub(crate) fn text(&self) -> Result<Option<TextFields>, String> {
        if self.fields.is_empty() {
            return Ok(None);
        }
        TextFields::new(self.fields.clone()).map(Some).map_err(|why| format!("search.fields {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_search_is_off_until_fields_are_named() {
        assert_eq!(Search::default().text(), Ok(None));
        let text = Search { fields: vec!["text".into()] }.text().unwrap();
        assert_eq!(text, Some(TextFields::new(vec!["text".into()]).unwrap()));
        let wrong = Search { fields: vec!["a..b".into()] }.text().unwrap_err();
        assert!(wrong.starts_with("search.fields must name fields such as"), "{wrong}");
    }
}
