//! Ctrl-C and SIGTERM: the first asks the work to stop, the second ends the process.

use crate::diag::{Code, Diagnostic, Exit, Interrupt, Result, no_thread};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Time for the command to stop and report after the first signal; then the process ends.
const GRACE: Duration = Duration::from_secs(10);

/// Installs a handler for Ctrl-C and SIGTERM, and returns the interrupt that it sets. Later calls return the same
/// interrupt.
pub fn listen() -> Result<Interrupt> {
    static HEARD: OnceLock<Interrupt> = OnceLock::new();
    if let Some(heard) = HEARD.get() {
        return Ok(heard.clone());
    }
    let interrupt = Interrupt::default();
    let noted = interrupt.clone();
    let end = || std::process::exit(Exit::Interrupted as i32);
    ctrlc::set_handler(move || {
        if noted.request() {
            end();
        }
        thread::spawn(move || {
            thread::sleep(GRACE);
            end();
        });
    })
    .map_err(|e| match e {
        ctrlc::Error::System(e) => no_thread(&e),
        e => Diagnostic::error(Code::Internal, format!("signals cannot be handled: {e}")).into(),
    })?;
    Ok(HEARD.get_or_init(|| interrupt).clone())
}
