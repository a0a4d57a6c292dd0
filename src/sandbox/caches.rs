//! The caches of tools that commands may write beside the workspace: one table.
//!
//! Only what a tool downloads or computes is here, never a folder of programs that run later, nor a tool's settings: a
//! build goes on as usual, and nothing that it leaves there is run outside the sandbox.

use std::path::PathBuf;

use crate::config::Environment;

/// The caches of one tool.
pub(super) struct Cache {
    /// The variable that moves its folder, if there is one.
    variable: Option<&'static str>,
    /// Where it is otherwise, below the home folder.
    home: &'static str,
    /// What of it is writable; empty for all of it.
    below: &'static [&'static str],
}

/// Every cache; `docs/sandbox.md` lists them.
pub(super) const CACHES: &[Cache] = &[
    Cache { variable: Some("XDG_CACHE_HOME"), home: ".cache", below: &[] },
    Cache {
        variable: Some("CARGO_HOME"),
        home: ".cargo",
        below: &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"],
    },
    Cache { variable: Some("RUSTUP_HOME"), home: ".rustup", below: &["tmp", "downloads"] },
    Cache { variable: Some("npm_config_cache"), home: ".npm", below: &[] },
    Cache { variable: None, home: ".local/share/pnpm/store", below: &[] },
    Cache { variable: None, home: ".yarn/berry", below: &[] },
    Cache { variable: None, home: ".bun/install/cache", below: &[] },
    Cache { variable: Some("GOCACHE"), home: ".cache/go-build", below: &[] },
    Cache { variable: Some("GOMODCACHE"), home: "go/pkg/mod", below: &[] },
    Cache { variable: Some("GOPATH"), home: "go", below: &["pkg"] },
    Cache { variable: Some("PIP_CACHE_DIR"), home: ".cache/pip", below: &[] },
    Cache { variable: Some("UV_CACHE_DIR"), home: ".cache/uv", below: &[] },
    Cache {
        variable: Some("GRADLE_USER_HOME"),
        home: ".gradle",
        below: &["caches", "daemon", "native", "notifications", "workers"],
    },
    Cache { variable: None, home: ".m2/repository", below: &[] },
    Cache { variable: None, home: ".ivy2/cache", below: &[] },
    Cache { variable: Some("NUGET_PACKAGES"), home: ".nuget/packages", below: &[] },
    Cache { variable: Some("CCACHE_DIR"), home: ".ccache", below: &[] },
    Cache { variable: Some("SCCACHE_DIR"), home: ".cache/sccache", below: &[] },
];

/// Their folders and files here; not necessarily there.
pub(super) fn folders(environment: &Environment) -> Vec<PathBuf> {
    CACHES
        .iter()
        .filter_map(|cache| {
            let moved = cache.variable.and_then(|name| environment.variable(name)).map(PathBuf::from);
            // A cache that is moved to the root or the home folder would open all of it.
            let moved =
                moved.filter(|path| path.components().count() > 2 && Some(path.as_path()) != environment.home());
            Some((moved.or_else(|| Some(environment.home()?.join(cache.home)))?, cache.below))
        })
        .filter(|(folder, _)| folder.is_absolute())
        .flat_map(|(folder, below)| match below {
            [] => vec![folder],
            parts => parts.iter().map(|part| folder.join(part)).collect(),
        })
        .collect()
}
