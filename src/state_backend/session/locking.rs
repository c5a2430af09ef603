//! The protocol's LOCK and UNLOCK requests; the lock's branch itself is `lock.rs`'s subject.

use super::super::lock::{self, GivenBack, Lock, LockError, LockId, Standing, Taken, describe};
use super::{Answer, Holder, Session};

impl Session {
    /// LOCK with Terraform's lock document.
    pub async fn lock(&mut self, body: &[u8]) -> Answer {
        let lock = match Lock::parse(body) {
            Ok(lock) => lock,
            Err(error) => return Answer::Bad(format!("not a lock: {error}")),
        };
        self.say(format!("Locking state in {}", self.key));
        if let Holder::Run(standing) = &self.holder {
            return Answer::Locked(standing.lock.clone());
        }
        let lock = lock.with_info(&self.provenance.lock_info());
        match self.take(&lock).await {
            Ok(Taken::Ours(standing)) => {
                self.holder = Holder::Client(Some(standing));
                self.refuse_in_time().await
            }
            Ok(Taken::Others(other)) => {
                self.say(format!("{} is locked: {}", self.key, describe(&other)));
                Answer::Locked(other)
            }
            Err(error) => self.failed(&error),
        }
    }

    /// A command that takes the lock is going to write: what would be refused then is refused before it does anything.
    async fn refuse_in_time(&mut self) -> Answer {
        if self.store.seals() {
            return Answer::Done;
        }
        let refused = match self.store.read(&self.key).await {
            Ok(Some(stored)) => self.store.may_replace(&self.key, &stored).err(),
            // Whatever is wrong with the state, the command itself says so when it reads it.
            Ok(None) | Err(_) => None,
        };
        let Some(refused) = refused else {
            return Answer::Done;
        };
        let text = crate::report::one_line(&refused);
        self.say(format!("refused: {text}"));
        match self.release().await {
            // Not 409: Terraform looks for a lock in that answer.
            Ok(_) => Answer::Bad(text),
            Err(error) => self.failed(&error),
        }
    }

    pub(super) async fn take(&mut self, lock: &Lock) -> Result<Taken, LockError> {
        let author = self.store.author().clone();
        let over = self.permits.unlock.as_ref();
        lock::take(self.store.locks(), &self.key, lock, &author, over).await
    }

    /// UNLOCK; the ID stands in the query, or in the lock document of the body, or nowhere.
    pub async fn unlock(&mut self, id: Option<&str>, body: &[u8]) -> Answer {
        self.say(format!("Unlocking state in {}", self.key));
        if let Holder::Run(_) = &self.holder {
            return Answer::Refused("the run itself holds the lock".to_owned());
        }
        let named = match id.map(str::parse::<LockId>) {
            Some(Ok(id)) => Some(id),
            Some(Err(error)) => return Answer::Bad(format!("not a lock's ID: {error}")),
            None => Lock::parse(body).ok().map(|lock| lock.id().clone()),
        };
        let held = match &self.holder {
            Holder::Client(Some(standing)) => Some(standing.clone()),
            _ => None,
        };
        let own = held.filter(|held| named.as_ref() == Some(held.lock.id()));
        // An ID that is named is as good as the one in `presync unlock`; Terraform's force-unlock names none.
        let Some(id) = named.or_else(|| self.permits.unlock.clone()) else {
            return self.not_its_lock().await;
        };
        if own.is_none() && self.given_back.as_ref() == Some(&id) {
            return Answer::Done; // the same request once more
        }
        match self.give_back(&id, own.as_ref()).await {
            Ok(GivenBack::Done) => {
                if own.is_some() {
                    self.holder = Holder::Client(None);
                }
                Answer::Done
            }
            Ok(GivenBack::NotLocked) => self.refused(format!("{} is not locked", self.key)),
            Ok(GivenBack::Others(other)) => {
                self.say(format!(
                    "refused: {} is locked by another: {}",
                    self.key,
                    describe(&other)
                ));
                Answer::Locked(other)
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Nothing tells which lock is meant.
    async fn not_its_lock(&mut self) -> Answer {
        match lock::read(self.store.locks(), &self.key).await {
            Ok(Some(standing)) => {
                let key = &self.key;
                let id = standing.lock.id();
                self.refused(format!(
                    "the request names no lock, and {key} is locked: {}. When its holder is gone: presync unlock {key} \
                     --lock-id {id}, or presync backend {key} --allow-unlock {id} -- terraform force-unlock -force {id}",
                    describe(&standing.lock)
                ))
            }
            Ok(None) => self.refused(format!("{} is not locked", self.key)),
            Err(error) => self.failed(&error),
        }
    }

    pub(super) async fn give_back(
        &mut self,
        id: &LockId,
        standing: Option<&Standing>,
    ) -> Result<GivenBack, LockError> {
        let clone = self.store.locks();
        let given_back = lock::give_back(clone, &self.key, id, standing).await?;
        // One that is gone already was given back by a request whose answer got lost, or by a person.
        let given_back = match given_back {
            GivenBack::NotLocked if standing.is_some() => GivenBack::Done,
            other => other,
        };
        if given_back == GivenBack::Done {
            self.given_back = Some(id.clone());
        }
        Ok(given_back)
    }
}
