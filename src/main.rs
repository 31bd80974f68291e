use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        let served = patsat::tune::worker::serve(std::io::stdin(), std::io::stdout());
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    ExitCode::SUCCESS
}
