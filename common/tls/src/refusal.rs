//! Why there is no TLS with a server, in words that say what to change.

use std::error::Error;
use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::{self, AlertDescription, CertificateError};

/// The words for an error that comes from TLS itself; `None` if it comes from something else, such as a server that is
/// away. A person has to change something, whatever they say. They follow "no TLS with SERVER: ".
pub fn refusal(error: &(dyn Error + 'static)) -> Option<String> {
    of_tls(error).map(words)
}

/// The error of TLS that this error is or comes from. Errors of IO and shared errors hide what they hold from
/// [`Error::source`].
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let io =
            error.downcast_ref::<io::Error>().and_then(io::Error::get_ref).map(|held| held as &(dyn Error + 'static));
        let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>().map(|held| &**held as &(dyn Error + 'static));
        next = io.or(shared).or_else(|| error.source());
    }
    None
}

fn words(error: &rustls::Error) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    match error {
        // A bad signature is that of another authority with the same name.
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            "its certificate is of an authority that is not trusted; name the right one in stores_tls.ca".to_owned()
        }
        rustls::Error::InvalidCertificate(why @ (NotValidForName | NotValidForNameContext { .. })) => {
            format!("its certificate is of another host than the URL names: {why}")
        }
        rustls::Error::InvalidCertificate(why @ (Expired | ExpiredContext { .. })) => {
            format!("its certificate has expired: {why}")
        }
        rustls::Error::InvalidCertificate(why) => format!("its certificate cannot be used: {why}"),
        rustls::Error::InvalidMessage(_) => "what answers there does not speak TLS".to_owned(),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it asks for a certificate of ours; name one in stores_tls.certificate and stores_tls.key".to_owned()
        }
        rustls::Error::AlertReceived(alert) => {
            format!(
                "it refused the handshake ({alert:?}); if it asks for a certificate of ours, look at \
                 stores_tls.certificate and stores_tls.key"
            )
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Arc<dyn Error + Send + Sync>);

    #[test]
    fn the_error_of_tls_is_found_below_errors_of_io_and_shared_ones() {
        let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let io = io::Error::new(io::ErrorKind::InvalidData, unknown());
        let wrapped = Outer(Arc::new(io));
        for error in [&unknown() as &(dyn Error + 'static), &wrapped, &io::Error::other(unknown())] {
            let why = refusal(error).expect("it is of TLS");
            assert!(why.contains("not trusted") && why.contains("stores_tls.ca"), "{why}");
        }
    }

    #[test]
    fn an_error_that_is_not_of_tls_has_no_words_of_tls() {
        assert_eq!(refusal(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
        assert_eq!(refusal(&Outer(Arc::new(io::Error::other("else")))), None);
    }
}
