//! Diagnostics: to a file, or to stderr when asked for; never to stdout.

use std::fs::OpenOptions;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::cli::Diagnostics;
use crate::config::Environment;
use crate::fault::{Fault, words};

/// Installs the subscriber. Quiet unless `-v`, `--log-file` or `RUST_LOG` asks for more than warnings.
///
/// # Errors
/// When the log file cannot be opened.
pub(crate) fn start(environment: &Environment, wanted: &Diagnostics) -> Result<(), Fault> {
    let level = match wanted.verbosity {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = match environment.variable("RUST_LOG") {
        Some(directives) if wanted.verbosity == 0 => EnvFilter::new(directives),
        _ => EnvFilter::new(format!(
            "off,sluice={level},sluice_harness={level},sluice_bridges={level},sluice_providers={level},sluice_protocol={level},sluice_tools={level}"
        )),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    let installed = match &wanted.log_file {
        Some(path) => {
            let path = environment.cwd().join(path);
            let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| {
                Fault::usage(
                    "log-file",
                    format!("the log file {} (--log-file) cannot be opened: {}", path.display(), words(&error)),
                    "name a file in a folder that exists and that you can write to",
                )
            })?;
            builder.with_writer(Mutex::new(file)).try_init()
        }
        None => builder.with_writer(std::io::stderr).try_init(),
    };
    // A second subscriber can only be there in a test; the first one stays.
    let _ = installed;
    Ok(())
}
