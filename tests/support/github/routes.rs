//! The routes, and what each of them answers.

use axum::http::Method;
use git2::{BranchType, Oid, Repository};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs1KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::objects;
use super::{Asked, Content, OWNER, Reply, Shared, TOKEN, locked};

/// A token that is handed out for an installation.
pub const INSTALLED: &str = "ghs_a-secret-of-the-installation";

/// What is asked for.
pub struct Call {
    template: &'static str,
    repo: String,
    /// What follows, decoded.
    name: String,
}

const ROUTES: [(&str, &str, &str); 19] = [
    ("GET", "git/ref/", "/git/ref/{ref}"),
    ("GET", "git/matching-refs/", "/git/matching-refs/{ref}"),
    ("GET", "git/commits/", "/git/commits/{commit_sha}"),
    ("GET", "git/trees/", "/git/trees/{tree_sha}"),
    ("GET", "git/blobs/", "/git/blobs/{file_sha}"),
    ("GET", "git/tags/", "/git/tags/{tag_sha}"),
    ("GET", "commits/", "/commits/{ref}"),
    ("GET", "compare/", "/compare/{basehead}"),
    ("GET", "rules/branches/", "/rules/branches/{branch}"),
    ("GET", "rulesets/", "/rulesets/{ruleset_id}"),
    ("GET", "branches/", "/branches/{branch}"),
    ("GET", "branches", "/branches"),
    ("POST", "git/blobs", "/git/blobs"),
    ("POST", "git/trees", "/git/trees"),
    ("POST", "git/commits", "/git/commits"),
    ("POST", "git/refs", "/git/refs"),
    ("PATCH", "git/refs/", "/git/refs/{ref}"),
    ("DELETE", "git/refs/", "/git/refs/{ref}"),
    ("GET", "", ""),
];

impl Call {
    pub fn of(asked: &Asked) -> Option<Call> {
        let path = asked.path.trim_start_matches('/');
        if asked.method == Method::POST && path.starts_with("app/installations/") {
            return Some(Call {
                template: "/app/installations/{installation_id}/access_tokens",
                repo: String::new(),
                name: path.to_owned(),
            });
        }
        let rest = path
            .strip_prefix("repos/")?
            .strip_prefix(OWNER)?
            .strip_prefix('/')?;
        let (repo, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some(branch) = rest
            .strip_prefix("branches/")
            .and_then(|r| r.strip_suffix("/protection"))
        {
            return Some(Call {
                template: "/repos/{owner}/{repo}/branches/{branch}/protection",
                repo: repo.to_owned(),
                name: decoded(branch),
            });
        }
        let (_, prefix, template) = ROUTES.into_iter().find(|(method, prefix, template)| {
            let whole = !template.ends_with('}');
            asked.method == *method
                && if whole {
                    rest == *prefix
                } else {
                    rest.starts_with(prefix)
                }
        })?;
        Some(Call {
            template: whole(template),
            repo: repo.to_owned(),
            name: decoded(&rest[prefix.len()..]),
        })
    }

    pub fn template(&self) -> &'static str {
        self.template
    }

    pub fn carry_out(&self, shared: &Shared, asked: &Asked) -> Reply {
        if self.repo.is_empty() {
            return token(shared, asked);
        }
        if ![TOKEN, INSTALLED]
            .iter()
            .any(|token| asked.authorization == format!("Bearer {token}"))
        {
            return Reply::refusal(401, "Bad credentials");
        }
        if let Some(new) = locked(&shared.account).renamed.get(self.repo.as_str()) {
            let old = format!("/repos/{OWNER}/{}", self.repo);
            let to = asked
                .path
                .replacen(&old, &format!("/repos/{OWNER}/{new}"), 1);
            let status = if asked.method == Method::GET {
                301
            } else {
                307
            };
            let mut reply = Reply::refusal(status, "Moved Permanently");
            reply
                .headers
                .push(("location", format!("{}{to}", super::BASE)));
            return reply;
        }
        let (path, repo) = self.open(shared);
        let Some(repository) = repo else {
            return Reply::refusal(404, "Not Found");
        };
        if asked.method != Method::GET && locked(&shared.account).archived {
            return Reply::refusal(403, "Repository was archived so is read-only.");
        }
        let example = || {
            shared
                .contract
                .example(&asked.method.as_str().to_lowercase(), self.template)
        };
        let body = asked.body.as_ref().unwrap_or(&Value::Null);
        let end = self.template.strip_prefix("/repos/{owner}/{repo}").unwrap();
        match (asked.method.as_str(), end) {
            ("GET", "") => self.repository(shared, &path, example()),
            ("GET", "/git/ref/{ref}") => {
                match repository.refname_to_id(&format!("refs/{}", self.name)) {
                    Ok(id) => Reply::json(200, objects::reference(&repository, &self.name, id)),
                    Err(_) => Reply::refusal(404, "Not Found"),
                }
            }
            ("GET", "/git/commits/{commit_sha}") => objects::commit(&repository, &self.name),
            ("GET", "/git/matching-refs/{ref}") => self.matching(shared, &repository, asked),
            ("GET", "/git/trees/{tree_sha}") if asked.query.contains("recursive=") => {
                let most = locked(&shared.account).listed;
                objects::all_below(&repository, &self.name, most)
            }
            ("GET", "/git/trees/{tree_sha}") => objects::tree(&repository, &self.name, 200),
            ("GET", "/git/blobs/{file_sha}") => objects::blob(&repository, &self.name, asked.raw),
            ("GET", "/git/tags/{tag_sha}") => objects::tag(&repository, &self.name, example()),
            ("GET", "/commits/{ref}") => match repository.revparse_single(&self.name) {
                Ok(found) => {
                    let mut value = example();
                    value["sha"] = found.id().to_string().into();
                    Reply::json(200, value)
                }
                Err(_) => Reply::refusal(422, &format!("No commit found for SHA: {}", self.name)),
            },
            ("GET", "/compare/{basehead}") => compare(&repository, &self.name, example()),
            ("GET", "/branches") => branches(&repository),
            ("GET", "/branches/{branch}") => self.branch(shared, &repository, example()),
            ("GET", "/branches/{branch}/protection") => {
                match locked(&shared.account).protection.clone() {
                    Some(Value::Null) => {
                        Reply::refusal(403, "Resource not accessible by personal access token")
                    }
                    Some(value) => Reply::json(200, value),
                    None => Reply::refusal(404, "Branch not protected"),
                }
            }
            ("GET", "/rules/branches/{branch}") => {
                Reply::json(200, locked(&shared.account).rules.clone().into())
            }
            ("GET", "/rulesets/{ruleset_id}") => {
                let mut value = example();
                if let Some(bypass) = locked(&shared.account).bypass {
                    value["current_user_can_bypass"] = bypass.into();
                }
                Reply::json(200, value)
            }
            ("POST", "/git/blobs") => objects::make_blob(&repository, body),
            ("POST", "/git/trees") => objects::make_tree(&repository, body),
            ("POST", "/git/commits") => objects::make_commit(&repository, body),
            ("POST", "/git/refs") => make_ref(&repository, body),
            ("PATCH", _) => self.move_ref(shared, &repository, body),
            ("DELETE", _) => match repository.find_reference(&format!("refs/{}", self.name)) {
                Ok(mut found) => {
                    found.delete().unwrap();
                    Reply {
                        status: 204,
                        headers: Vec::new(),
                        content: Content::None,
                    }
                }
                Err(_) => Reply::refusal(422, "Reference does not exist"),
            },
            (method, end) => panic!("no {method} {end}"),
        }
    }

    /// GitHub finds a repository whatever the case of its name, and tells its own spelling.
    fn open(&self, shared: &Shared) -> (String, Option<Repository>) {
        let names = std::fs::read_dir(&shared.root).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let wanted = format!("{}.git", self.repo).to_lowercase();
        let name = names.find(|name| name.to_lowercase() == wanted);
        let repository = name
            .as_ref()
            .map(|name| Repository::open_bare(shared.root.join(name)).unwrap());
        let name = name.unwrap_or_default();
        (name.trim_end_matches(".git").to_owned(), repository)
    }

    fn repository(&self, shared: &Shared, name: &str, mut value: Value) -> Reply {
        let account = locked(&shared.account);
        value["name"] = name.into();
        value["full_name"] = format!("{OWNER}/{name}").into();
        value["default_branch"] = "main".into();
        value["archived"] = account.archived.into();
        value["permissions"] = json!({ "admin": false, "pull": true, "push": account.push });
        let mut reply = Reply::json(200, value);
        reply.headers.extend(
            account
                .scopes
                .map(|scopes| ("x-oauth-scopes", scopes.to_owned())),
        );
        reply
    }

    fn branch(&self, shared: &Shared, repository: &Repository, mut value: Value) -> Reply {
        let Ok(found) = repository.find_branch(&self.name, BranchType::Local) else {
            return Reply::refusal(404, "Branch not found");
        };
        value["name"] = self.name.clone().into();
        value["commit"]["sha"] = found.get().target().unwrap().to_string().into();
        value["protected"] = locked(&shared.account).protection.is_some().into();
        Reply::json(200, value)
    }

    /// All refs whose names begin so, in pages where the account says so.
    fn matching(&self, shared: &Shared, repository: &Repository, asked: &Asked) -> Reply {
        let beginning = format!("refs/{}", self.name);
        let refs = repository.references().unwrap().map(Result::unwrap);
        let mut refs: Vec<_> = refs
            .filter(|found| found.name().unwrap().starts_with(&beginning))
            .collect();
        refs.sort_by_key(|found| found.name().unwrap().to_owned());
        let page = asked.query.strip_prefix("page=");
        let page: usize = page.map_or(1, |number| number.parse().unwrap());
        let size = locked(&shared.account).page;
        let (before, after) = (
            (page - 1) * size,
            refs.len().saturating_sub((page - 1) * size),
        );
        let here = refs.iter().skip(before).take(size).map(|found| {
            let name = found.name().unwrap().strip_prefix("refs/").unwrap();
            objects::reference(repository, name, found.target().unwrap())
        });
        let mut reply = Reply::json(200, here.collect());
        if after > size {
            let list = format!("{}{}", shared.api, asked.path);
            let next = page + 1;
            reply.headers.push((
                "link",
                format!("<{list}?page=1>; rel=\"first\", <{list}?page={next}>; rel=\"next\""),
            ));
        }
        reply
    }

    fn move_ref(&self, shared: &Shared, repository: &Repository, body: &Value) -> Reply {
        let moving = locked(&shared.moving);
        let name = format!("refs/{}", self.name);
        let wanted = id_of(&body["sha"]).filter(|id| repository.find_commit(*id).is_ok());
        let (Ok(now), Some(wanted)) = (repository.refname_to_id(&name), wanted) else {
            return Reply::refusal(422, "Reference does not exist");
        };
        let forward = now == wanted || repository.graph_descendant_of(wanted, now).unwrap();
        if !forward && body["force"] != true {
            return Reply::refusal(422, "Update is not a fast forward");
        }
        repository.reference(&name, wanted, true, "").unwrap();
        let read = format!("/repos/{OWNER}/{}/git/ref/{}", self.repo, self.name);
        locked(&shared.before).insert(read, now.to_string());
        drop(moving);
        Reply::json(200, objects::reference(repository, &self.name, wanted))
    }
}

fn whole(template: &'static str) -> &'static str {
    // As the description spells it, kept for the life of the test.
    Box::leak(format!("/repos/{{owner}}/{{repo}}{template}").into_boxed_str())
}

fn decoded(text: &str) -> String {
    let query = format!("x={}", text.replace('+', "%2B"));
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.next().unwrap().1.into_owned()
}

pub fn id_of(value: &Value) -> Option<Oid> {
    let text = value.as_str().filter(|text| text.len() == 40)?;
    Oid::from_str(text).ok()
}

fn branches(repository: &Repository) -> Reply {
    let branches = repository.branches(Some(BranchType::Local)).unwrap();
    let branches = branches.map(|branch| {
        let (branch, _) = branch.unwrap();
        let sha = branch.get().target().unwrap().to_string();
        json!({
            "name": branch.name().unwrap(),
            "commit": { "sha": sha, "url": "https://api.example.com/" },
            "protected": false,
        })
    });
    Reply::json(200, branches.collect())
}

/// `main...abc`: where the second is, seen from the first.
fn compare(repository: &Repository, range: &str, mut value: Value) -> Reply {
    let (base, head) = range.split_once("...").unwrap();
    let find = |name: &str| {
        let branch = format!("refs/heads/{name}");
        let found = repository.refname_to_id(&branch).ok();
        found.or_else(|| {
            Oid::from_str(name)
                .ok()
                .filter(|id| repository.find_commit(*id).is_ok())
        })
    };
    let (Some(base), Some(head)) = (find(base), find(head)) else {
        return Reply::refusal(404, "Not Found");
    };
    let (ahead, behind) = repository.graph_ahead_behind(head, base).unwrap();
    let status = match (ahead, behind) {
        (0, 0) => "identical",
        (0, _) => "behind",
        (_, 0) => "ahead",
        _ => "diverged",
    };
    value["status"] = status.into();
    value["ahead_by"] = ahead.into();
    value["behind_by"] = behind.into();
    Reply::json(200, value)
}

fn make_ref(repository: &Repository, body: &Value) -> Reply {
    let name = body["ref"].as_str().unwrap_or_default();
    let wanted = id_of(&body["sha"]).filter(|id| repository.find_commit(*id).is_ok());
    let Some(wanted) = wanted else {
        return Reply::refusal(422, "Object does not exist");
    };
    match repository.reference(name, wanted, false, "") {
        Ok(_) => {
            let name = name.strip_prefix("refs/").unwrap();
            Reply::json(201, objects::reference(repository, name, wanted))
        }
        Err(_) => Reply::refusal(422, "Reference already exists"),
    }
}

/// Hands out a token for an installation, for the proof of the App whose key lies beside the tests.
fn token(shared: &Shared, asked: &Asked) -> Reply {
    let pem = include_bytes!("../../github/app-key.pem");
    let key = PrivatePkcs1KeyDer::from_pem_slice(pem).unwrap();
    let key = RsaKeyPair::from_der(key.secret_pkcs1_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
    let sound = || {
        let proof = asked.authorization.strip_prefix("Bearer ")?;
        let (signed, signature) = proof.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        public.verify(signed.as_bytes(), &signature).ok()?;
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let lives = claims["exp"].as_u64()? - claims["iat"].as_u64()?;
        (claims["iss"] == "12345" && lives <= 600).then_some(())
    };
    if sound().is_none() {
        return Reply::refusal(401, "A JSON web token could not be decoded");
    }
    let contents = locked(&shared.account).contents;
    Reply::json(
        201,
        json!({
            "token": INSTALLED,
            "expires_at": "2999-01-01T00:00:00Z",
            "permissions": { "contents": contents, "metadata": "read" },
            "repository_selection": "all",
        }),
    )
}
