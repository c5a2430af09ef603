//! An HTTP server that takes requests and answers them only when it is told to.
#![expect(
    clippy::unwrap_used,
    reason = "a panic here fails the test that asked for the server"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The server. It answers everything, and then at once, from [`SlowServer::answer`] on, or when it is dropped.
pub struct SlowServer {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    asked: usize,
    answers: bool,
}

/// A Terraform state without anything, so that a remote state that is read late is read well.
const STATE: &str = r#"{"version":4,"terraform_version":"1.7.0","serial":1,"lineage":"late","outputs":{},"resources":[]}"#;

impl SlowServer {
    pub fn start() -> SlowServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let shared = Arc::clone(&state);
        // Left alone at the end of the test: it only waits for connections that nobody makes.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        SlowServer { address, state }
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the first request.
    pub fn wait_for_a_request(&self) {
        let (state, changed) = &*self.state;
        let bound = Duration::from_secs(90);
        let (state, _) = changed
            .wait_timeout_while(state.lock().unwrap(), bound, |state| state.asked == 0)
            .unwrap();
        assert!(state.asked > 0, "nobody asked the slow server");
    }

    /// From now on every request is answered.
    pub fn answer(&self) {
        let (state, changed) = &*self.state;
        state.lock().unwrap().answers = true;
        changed.notify_all();
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.answer();
    }
}

fn serve(mut stream: TcpStream, (state, changed): &(Mutex<State>, Condvar)) {
    let mut piece = [0; 4096];
    if !stream.read(&mut piece).is_ok_and(|count| count > 0) {
        return;
    }
    let mut state = state.lock().unwrap();
    state.asked += 1;
    changed.notify_all();
    let state = changed.wait_while(state, |state| !state.answers).unwrap();
    drop(state);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{STATE}",
        STATE.len()
    );
    // The client may have been killed in the meantime.
    stream.write_all(answer.as_bytes()).ok();
}
