//! Where a git repository is reached.

use std::path::PathBuf;

use super::{NameError, OwnerName, RepoName, name};

/// The address of a git repository, or of the folder or account below which repositories lie.
///
/// Taken are `https://`, `http://`, `ssh://` and `file://` URLs, the scp form `[user@]host:path`, and an absolute path,
/// which is kept as a `file://` URL (git ignores `--filter` for a plain path,
/// <https://git-scm.com/docs/git-clone#Documentation/git-clone.txt---filterltfilter-specgt>). Refused are other
/// transports, since `ext::` runs a command (<https://git-scm.com/docs/git-remote-ext>); passwords, which would end
/// up in logs and argument lists; control characters, also percent-encoded, which have ended a line of git's
/// credential protocol (<https://nvd.nist.gov/vuln/detail/CVE-2020-5260>); a host, user or path that begins with `-`,
/// which `ssh` takes for an option; a query or fragment; and `.` and `..` as segments of the path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoUrl(String);

name!(RepoUrl, check_url);

const KIND: &str = "repository URL";
const RULE: &str = "it must be an https://, http://, ssh:// or file:// URL, user@host:path or an absolute path, without a password in it";
const SECRET_RULE: &str = "take it out of the URL and hand the password over in the environment (GIT_USERNAME and GIT_PASSWORD, or GITHUB_TOKEN)";

/// How GitHub's and GitLab's tokens begin
/// (<https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats>,
/// <https://docs.gitlab.com/security/tokens/#token-prefixes>).
pub(crate) const TOKEN_PREFIXES: [&str; 7] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Https,
    Http,
    Ssh,
    File,
}

impl Transport {
    fn is_http(self) -> bool {
        matches!(self, Self::Https | Self::Http)
    }
}

/// A URL taken apart, its pieces as they were written.
struct Parts<'a> {
    transport: Transport,
    user: Option<&'a str>,
    host: &'a str,
    port: Option<&'a str>,
    path: &'a str,
}

impl RepoUrl {
    /// `https://github.com`, below which `<owner>/<repository>` lies.
    pub fn github() -> Self {
        Self("https://github.com".to_owned())
    }

    /// Whether both addresses lead to the same repository.
    ///
    /// Case, `.git`, a trailing `/`, the scheme and the user are ignored, so the https, ssh and scp forms of one host
    /// and path are the same. Ports count only where both URLs name one and both are http(s) or both ssh, since
    /// a host serves the same repositories on different ports for each. In doubt the answer is yes: who asks wants
    /// to know whether a repository is in use.
    pub fn same_repository(&self, other: &RepoUrl) -> bool {
        let (Some(a), Some(b)) = (split(&self.0), split(&other.0)) else {
            return self == other;
        };
        let same_way_in =
            a.transport == b.transport || (a.transport.is_http() && b.transport.is_http());
        let ports_differ = same_way_in && matches!((a.port, b.port), (Some(a), Some(b)) if a != b);
        !ports_differ
            && (a.transport == Transport::File) == (b.transport == Transport::File)
            && (a.transport == Transport::File
                || comparable_host(a.host) == comparable_host(b.host))
            && comparable_path(a.path) == comparable_path(b.path)
    }

    /// `https://host[:port]` of an http or https URL: the scope to which a credential helper of git is bound
    /// (<https://git-scm.com/docs/gitcredentials#_credential_contexts>). `None` for the other forms, which use no
    /// credentials of git.
    pub fn host_scope(&self) -> Option<String> {
        let parts = split(&self.0)?;
        let scheme = match parts.transport {
            Transport::Https => "https",
            Transport::Http => "http",
            Transport::Ssh | Transport::File => return None,
        };
        let host = parts.host.to_ascii_lowercase();
        Some(match parts.port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        })
    }

    /// The address of a repository below this one: `<this>/<repo>.git`.
    pub fn join(&self, repo: &RepoName) -> RepoUrl {
        RepoUrl(format!("{}/{repo}.git", self.0.trim_end_matches('/')))
    }

    /// The address of an account's repositories below this one: `<this>/<owner>`.
    pub fn account(&self, owner: &OwnerName) -> RepoUrl {
        RepoUrl(format!("{}/{owner}", self.0.trim_end_matches('/')))
    }

    /// The name of the repository: the last segment, without `.git`.
    pub fn repo_name(&self) -> Result<RepoName, NameError> {
        let path = split(&self.0).map_or("", |parts| parts.path);
        let last = path.trim_end_matches('/').rsplit(['/', ':']).next();
        let last = last.unwrap_or_default();
        last.strip_suffix(".git").unwrap_or(last).parse()
    }

    /// The repository as people name it: its path on the host, `<owner>/<name>`; of a `file://` URL the name alone.
    pub fn full_name(&self) -> String {
        let Some(parts) = split(&self.0) else {
            return String::new();
        };
        let path = parts.path.trim_matches('/');
        let end = path.len().saturating_sub(".git".len());
        let path = match path.get(end..) {
            Some(suffix) if suffix.eq_ignore_ascii_case(".git") => &path[..end],
            _ => path,
        };
        match parts.transport {
            Transport::File => path.rsplit('/').next().unwrap_or_default().to_owned(),
            Transport::Https | Transport::Http | Transport::Ssh => path.to_owned(),
        }
    }

    /// The folder that a `file://` URL names; `None` for every other form.
    pub fn folder(&self) -> Option<PathBuf> {
        let parts = split(&self.0)?;
        if parts.transport != Transport::File {
            return None;
        }
        percent_decoded(parts.path).map(PathBuf::from)
    }

    /// Whether a path follows the host, as in every URL of a repository.
    pub fn has_path(&self) -> bool {
        split(&self.0).is_some_and(|parts| !comparable_path(parts.path).is_empty())
    }
}

fn check_url(text: &str) -> Result<String, NameError> {
    let refuse = |part: &str| NameError::new(KIND, &without_secret(text), part.to_owned(), RULE);
    if text.is_empty() {
        return Err(refuse("being empty"));
    }
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Err(refuse(&format!(
            "the control character {:?} in it",
            c.to_string()
        )));
    }
    if text.starts_with('-') {
        return Err(refuse("the \"-\" at its beginning"));
    }
    if text.starts_with('/') {
        return check_parts(&format!("file://{}", encode_path(text)), text);
    }
    check_parts(text, text)
}

/// `text` is the URL to keep, `given` what is shown when it is refused.
fn check_parts(text: &str, given: &str) -> Result<String, NameError> {
    let shown = without_secret(given);
    let refuse = |part: String| NameError::new(KIND, &shown, part, RULE);
    let Some(parts) = split(text) else {
        return Err(refuse(unknown_form(text)));
    };
    if parts.user.is_some_and(|user| user.contains(':')) {
        return Err(NameError::new(
            KIND,
            &shown,
            "the password in it".to_owned(),
            SECRET_RULE,
        ));
    }
    if parts
        .user
        .is_some_and(|user| TOKEN_PREFIXES.iter().any(|p| user.starts_with(p)))
    {
        return Err(NameError::new(
            KIND,
            &shown,
            "the token in it".to_owned(),
            SECRET_RULE,
        ));
    }
    if parts.transport == Transport::File {
        if !matches!(parts.host, "" | "localhost") || parts.user.is_some() || parts.port.is_some() {
            return Err(refuse("the host in a file:// URL".to_owned()));
        }
    } else {
        check_host(&parts).map_err(&refuse)?;
    }
    if let Some(c) = text
        .chars()
        .find(|c| c.is_whitespace() || matches!(c, '?' | '#' | '\\' | '"' | '<' | '>'))
    {
        return Err(refuse(format!("the character {:?} in it", c.to_string())));
    }
    let is_scp = !text.contains("://");
    if is_scp && parts.path.is_empty() {
        return Err(refuse("the missing path after \":\"".to_owned()));
    }
    if parts.path.starts_with('-') {
        return Err(refuse("the path that begins with \"-\"".to_owned()));
    }
    let path = percent_decoded(parts.path).ok_or_else(|| {
        refuse("a \"%\" that is not followed by two digits of UTF-8 text".to_owned())
    })?;
    if path.chars().any(char::is_control) {
        return Err(refuse("the encoded control character in it".to_owned()));
    }
    if path.matches('/').count() != parts.path.matches('/').count() {
        return Err(refuse("the encoded \"/\" in it".to_owned()));
    }
    if let Some(segment) = path.split('/').find(|s| matches!(*s, "." | "..")) {
        return Err(refuse(format!("the segment {segment:?}")));
    }
    Ok(text.to_owned())
}

/// Names what makes a text none of the forms that [`split`] knows.
fn unknown_form(text: &str) -> String {
    if text.contains("::") {
        "the transport before its \"::\"".to_owned()
    } else if let Some((scheme, _)) = text.split_once("://") {
        format!("the scheme {scheme:?}")
    } else {
        "being a relative path".to_owned()
    }
}

fn check_host(parts: &Parts<'_>) -> Result<(), String> {
    let host = parts.host;
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let known = match inner {
        Some(address) => {
            !address.is_empty()
                && address
                    .chars()
                    .all(|c| c.is_ascii_hexdigit() || ":.".contains(c))
        }
        None => {
            !host.is_empty()
                && !host.starts_with(['-', '.'])
                && host
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        }
    };
    if !known {
        return Err(format!("the host {host:?}"));
    }
    if let Some(port) = parts.port
        && port.parse::<u16>().is_err()
    {
        return Err("the port".to_owned());
    }
    match parts.user {
        Some(user)
            if user.is_empty()
                || user.starts_with('-')
                || !user
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-._+~".contains(c)) =>
        {
            Err("the user before the \"@\"".to_owned())
        }
        _ => Ok(()),
    }
}

fn split(text: &str) -> Option<Parts<'_>> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return split_scp(text);
    };
    let transport = match scheme.to_ascii_lowercase().as_str() {
        "https" => Transport::Https,
        "http" => Transport::Http,
        "ssh" => Transport::Ssh,
        "file" => Transport::File,
        _ => return None,
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host_port) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host_end = host_port.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match host_port[host_end..].find(':') {
        Some(colon) => {
            let (host, port) = host_port.split_at(host_end + colon);
            (host, Some(&port[1..]))
        }
        None => (host_port, None),
    };
    Some(Parts {
        transport,
        user,
        host,
        port,
        path,
    })
}

/// The scp form: a colon before the first slash, as git tells it from a path
/// (<https://git-scm.com/docs/git-clone#_git_urls>).
fn split_scp(text: &str) -> Option<Parts<'_>> {
    if text.contains("::") {
        return None;
    }
    let first = &text[..text.find('/').unwrap_or(text.len())];
    let (user, host_and_path) = match first.rfind('@') {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    let (host, path) = host_and_path.split_once(':')?;
    (!host.contains('/')).then_some(Parts {
        transport: Transport::Ssh,
        user,
        host,
        port: None,
        path,
    })
}

/// The text with everything before the host hidden, when that could hold a secret.
fn without_secret(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    // The last "@", also behind a slash: a password may hold one that is not encoded.
    match rest.rfind('@') {
        Some(at) if &rest[..at] != "git" => format!("{scheme}***{}", &rest[at..]),
        _ => text.to_owned(),
    }
}

/// Percent-encodes what an absolute path may hold and a URL may not; git decodes it again.
fn encode_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '%' | '?' | '#' | '\\' | '"' | '<' | '>' => encoded.push_str(&percent(c)),
            c if c.is_whitespace() => encoded.push_str(&percent(c)),
            c => encoded.push(c),
        }
    }
    encoded
}

fn percent(c: char) -> String {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer)
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// The host as it is compared: `www.` and `ssh.` lead to the same repositories on GitHub
/// (<https://docs.github.com/en/authentication/troubleshooting-ssh/using-ssh-over-the-https-port>).
fn comparable_host(host: &str) -> String {
    let host = host.to_lowercase();
    let host = host.trim_end_matches('.');
    match host {
        "ssh.github.com" | "www.github.com" => "github.com".to_owned(),
        _ => host.to_owned(),
    }
}

fn comparable_path(path: &str) -> String {
    let path = percent_decoded(path)
        .unwrap_or_else(|| path.to_owned())
        .to_lowercase();
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let path = segments.join("/");
    path.strip_suffix(".git").unwrap_or(&path).to_owned()
}
