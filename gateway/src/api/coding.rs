//! How the body of an answer is coded: not at all, or by gzip for a caller that accepts gzip.
//!
//! Invariant: the bytes of an answer are coded before they are counted, so what waits for a slow caller is the coded
//! answer. Nothing is coded piece by piece while it is sent, since each answer that waits would hold the state of an
//! encoder.

use std::io::Write;

use axum::http::{HeaderMap, header};
use flate2::Compression;
use flate2::write::GzEncoder;

/// An answer below this size is sent as it is: it fits one packet.
const LEAST_BYTES: usize = 1024;

/// How a body is coded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// The body is sent as it is.
    #[default]
    Identity,
    /// The body is compressed by gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// The coding that `Accept-Encoding` asks for (RFC 9110, section 12.5.3): gzip, unless the header refuses it or
    /// prefers a body that is not coded.
    pub(crate) fn asked(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        let mut named: Vec<(String, f32)> = lines.flat_map(|line| line.split(',')).filter_map(weighed).collect();
        let mut take = |name: &str| {
            let place = named.iter().position(|(known, _)| known == name)?;
            Some(named.swap_remove(place).1)
        };
        let (gzip, identity) = (take("gzip").or_else(|| take("x-gzip")), take("identity"));
        match gzip.or_else(|| take("*")) {
            Some(weight) if weight > 0.0 && identity.is_none_or(|identity| weight >= identity) => Self::Gzip,
            _ => Self::Identity,
        }
    }

    /// Codes a body that comes in `pieces`, and writes it to `out`. Each piece is freed once it is coded. Gives the
    /// value of `Content-Encoding`; `None` if the body stays as it is, and then `out` gets nothing and `pieces` stay.
    pub(crate) fn apply(self, pieces: &mut Vec<Vec<u8>>, out: impl Write) -> Option<&'static str> {
        if self == Self::Identity || pieces.iter().map(Vec::len).sum::<usize>() < LEAST_BYTES {
            return None;
        }
        // The fastest level is enough: pages are JSON with names that repeat, and it finds most of these.
        let mut gzip = GzEncoder::new(out, Compression::fast());
        for piece in pieces.drain(..) {
            gzip.write_all(&piece).expect("memory takes all");
        }
        gzip.finish().expect("memory takes all");
        Some("gzip")
    }
}

/// One coding of the header with its weight, which is 1 if the header gives none; `None` if the weight is no number.
fn weighed(part: &str) -> Option<(String, f32)> {
    let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
    let weight = match parameters.trim().split_once('=') {
        Some((q, weight)) if q.trim().eq_ignore_ascii_case("q") => weight.trim().parse().ok()?,
        _ => 1.0,
    };
    Some((name.trim().to_ascii_lowercase(), weight))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn asked(lines: &[&str]) -> Coding {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::ACCEPT_ENCODING, line.parse().unwrap());
        }
        Coding::asked(&headers)
    }

    #[test]
    fn gzip_is_used_if_it_is_asked_for_and_not_refused() {
        for lines in
            [&["gzip"][..], &["br, GZIP;q=0.5"], &["*"], &["identity;q=0.5, gzip"], &["br", "gzip; q=1.0"], &["x-gzip"]]
        {
            assert_eq!(asked(lines), Coding::Gzip, "{lines:?}");
        }
        for lines in [
            &[][..],
            &[""],
            &["br"],
            &["gzip;q=0"],
            &["*;q=0"],
            &["gzip;q=0, *"],
            &["identity, gzip;q=0.5"],
            &["gzip;q=x"],
        ] {
            assert_eq!(asked(lines), Coding::Identity, "{lines:?}");
        }
    }

    #[test]
    fn a_body_is_whole_behind_gzip_and_a_small_one_stays_as_it_is() {
        let mut coded = Vec::new();
        let pieces = || vec![vec![b'a'; 700], vec![b'b'; 700]];
        assert_eq!(Coding::Gzip.apply(&mut pieces(), &mut coded), Some("gzip"));
        let mut whole = Vec::new();
        GzDecoder::new(&*coded).read_to_end(&mut whole).unwrap();
        assert!(whole == pieces().concat() && coded.len() < 100);
        let mut small = vec![vec![b'a'; LEAST_BYTES - 1]];
        assert_eq!(Coding::Gzip.apply(&mut small, &mut coded), None);
        assert_eq!((Coding::Identity.apply(&mut pieces(), &mut coded), small[0].len()), (None, LEAST_BYTES - 1));
    }
}
