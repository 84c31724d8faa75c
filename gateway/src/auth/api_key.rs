//! The keys of backends: each has a name, roles and the digest of the key itself.
//!
//! A key is 256 random bits, so its plain SHA-256 is enough: nobody can guess a key from its digest. A slow hash, which
//! passwords need, would only slow down each request.
//!
//! Invariants: no key is kept in the clear, and digests are compared in constant time.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use subtle::ConstantTimeEq;

use super::secret::digest;

/// The longest name of a key, in characters.
const NAME_MAX: usize = 64;

/// How a digest begins in a line.
const SHA256: &str = "sha256:";

/// What a backend may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Read what any user may read, lists of followers, and statistics.
    Read,
    /// Change items, follows, shields and classes.
    Publish,
    /// Everything: also make tokens, end sessions, import and export.
    Admin,
}

/// The roles of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles(u8);

/// A key of a backend, without the key itself.
///
/// As a text it is one line: its name, its roles and its digest, with spaces between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    name: Box<str>,
    roles: Roles,
    digest: [u8; 32],
}

impl Role {
    /// All roles, the weakest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Publish, Self::Admin];

    /// The role's name, as in files and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Publish => "publish",
            Self::Admin => "admin",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or_else(|| format!("a role is read, publish or admin, not {text:?}"))
    }
}

impl Roles {
    /// The role of the key that the server makes for itself, and of the console.
    pub(crate) const ADMIN: Self = Self(1 << Role::Admin as u8);

    /// Whether a key with these roles may do what `role` allows.
    pub fn allow(self, role: Role) -> bool {
        self.0 & (role.bit() | Role::Admin.bit()) != 0
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }
}

impl Display for Roles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Role::ALL.iter().filter(|role| self.0 & role.bit() != 0).map(|role| role.name()).collect();
        f.write_str(&names.join(","))
    }
}

impl ApiKey {
    /// The entry for `key`, which is text of at least 256 random bits. Fails if the name is not 1 to 64 of
    /// `A-Za-z0-9_.-`, or if there is no role.
    pub fn new(name: &str, roles: Roles, key: &str) -> Result<Self, String> {
        Self::of(name, roles, digest(key))
    }

    fn of(name: &str, roles: Roles, digest: [u8; 32]) -> Result<Self, String> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !plain || !(1..=NAME_MAX).contains(&name.len()) {
            return Err(format!("the name of a key is 1 to {NAME_MAX} of A-Za-z0-9_.-, not {name:?}"));
        }
        if roles == Roles::default() {
            return Err("a key has one or more of the roles read, publish and admin".to_owned());
        }
        Ok(Self { name: name.into(), roles, digest })
    }

    /// The name of the key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The roles of the key.
    pub(super) fn roles(&self) -> Roles {
        self.roles
    }

    /// Whether this is the key with this digest, compared in constant time.
    pub(super) fn is(&self, digest: &[u8; 32]) -> bool {
        self.digest.ct_eq(digest).into()
    }
}

impl Display for ApiKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {SHA256}", self.name, self.roles)?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ApiKey {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, roles, digest] = words[..] else {
            return Err(format!("a key is NAME ROLES {SHA256}DIGEST, with spaces between them"));
        };
        let roles: Roles = roles.split(',').map(str::parse).collect::<Result<_, String>>()?;
        let digest = digest.strip_prefix(SHA256).and_then(unhex);
        Self::of(name, roles, digest.ok_or_else(|| format!("a digest is {SHA256} and 64 hexadecimal digits"))?)
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let plain = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok();
    let bytes: Option<Vec<u8>> = plain.then(|| (0..32).map(byte).collect()).flatten();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_a_name_roles_and_a_digest_but_not_the_key() {
        let key =
            ApiKey::new("shop-2", [Role::Publish, Role::Read].into_iter().collect(), "a key of 256 bits").unwrap();
        let line = key.to_string();
        assert!(line.starts_with("shop-2 read,publish sha256:") && !line.contains("a key"), "{line}");
        assert_eq!(line.parse(), Ok(key.clone()));
        assert!(key.is(&digest("a key of 256 bits")) && !key.is(&digest("a key of 256 bitz")));
    }

    #[test]
    fn a_role_allows_its_own_and_admin_allows_everything() {
        for (has, allowed) in
            [(Role::Read, [true, false, false]), (Role::Publish, [false, true, false]), (Role::Admin, [true; 3])]
        {
            let roles: Roles = [has].into_iter().collect();
            assert_eq!(Role::ALL.map(|role| roles.allow(role)), allowed, "{roles}");
        }
        assert_eq!(Roles::ADMIN.to_string(), "admin");
        let twice: Roles = [Role::Read, Role::Read].into_iter().collect();
        assert!(twice.allow(Role::Read), "a role that is named twice is still given");
    }

    #[test]
    fn a_line_that_is_no_key_is_refused_with_what_would_be_right() {
        let digest = "0".repeat(64);
        for (line, wants) in [
            ("shop read".to_owned(), "NAME ROLES sha256:DIGEST"),
            (format!("shop read sha256:{digest} x"), "NAME ROLES sha256:DIGEST"),
            (format!("shop write sha256:{digest}"), "read, publish or admin"),
            (format!("shop , sha256:{digest}"), "read, publish or admin"),
            (format!("sh/op read sha256:{digest}"), "1 to 64 of"),
            (format!("{} read sha256:{digest}", "x".repeat(65)), "1 to 64 of"),
            (format!("shop read {digest}"), "64 hexadecimal digits"),
            (format!("shop read sha256:{}", &digest[1..]), "64 hexadecimal digits"),
            (format!("shop read sha256:+{}", &digest[1..]), "64 hexadecimal digits"),
        ] {
            let error = line.parse::<ApiKey>().unwrap_err();
            assert!(error.contains(wants), "{line}: {error}");
        }
        assert!(ApiKey::new("shop", Roles::default(), "key").unwrap_err().contains("one or more of the roles"));
    }
}
