//! The confinement of one command: Landlock for files and signals, a seccomp filter for the network and for the calls
//! by which a process gets out of a confinement or at the kernel.
//!
//! Which folders a policy means is in [`places`], which system calls are refused in [`calls`], what root
//! gives up in [`powers`]. Nothing here starts a
//! process: a warden prepares a [`Cage`], and the forked child enters it just before it becomes the command.
//!
//! The invariant: what was prepared is entered whole, or the command does not start. What the kernel cannot do is known
//! before, as [`Gap`]s: with one of those that were asked for by name nothing runs.

mod calls;
mod places;
mod powers;

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::FileType;
use seccompiler::BpfProgram;
use sluice_harness::seam::process::Confinement;
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};

/// The first version of Landlock that lets nobody empty a file that he may not write (Linux 6.2).
const FILES: ABI = ABI::V3;
/// The version whose further restrictions are taken where they exist (Linux 6.12).
const BEST: ABI = ABI::V6;

/// Something that a policy asks for and this kernel cannot do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What is not held back, as words for a list.
    pub what: &'static str,
    /// Whether it is so much of what was asked for by name that nothing runs.
    pub forbids: bool,
}

/// What of this policy the kernel cannot enforce. Asks the kernel, and changes nothing.
#[must_use]
pub fn gaps(policy: &SandboxPolicy) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let fenced = policy.mode != SandboxMode::Off;
    let missing = |rights: BitFlags<AccessFs>| strictly().handle_access(rights).is_err();
    let mut gap = |what, forbids| gaps.push(Gap { what, forbids });
    if fenced {
        if missing(AccessFs::from_all(ABI::V1)) {
            gap("files (the kernel has no Landlock, or it is not switched on)", policy.required.mode);
        } else if missing(AccessFs::from_all(FILES)) {
            gap("emptying files (that needs Landlock of Linux 6.2)", policy.required.mode);
        }
        if strictly().scope(Scope::from_all(BEST)).is_err() {
            gap("signals to other processes (that needs Landlock of Linux 6.12)", false);
        }
    }
    if !calls::can_be_filtered() {
        if fenced {
            gap("tracing, mounting and other such calls (the kernel has no seccomp filters)", policy.required.mode);
        }
        if !policy.network {
            gap("the network (the kernel has no seccomp filters)", policy.required.network);
        }
    }
    gaps
}

fn strictly() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

/// A confinement that is ready to be entered.
pub(crate) struct Cage {
    files: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    fenced: bool,
}

impl Cage {
    /// Makes what a command is to be confined by.
    ///
    /// # Errors
    /// One sentence, when it must be confined and cannot be.
    pub(crate) fn of(confinement: &Confinement) -> Result<Self, String> {
        let policy = &confinement.policy;
        if !policy.confines() {
            return Ok(Self { files: None, filters: Vec::new(), fenced: false });
        }
        let missing: Vec<&str> = gaps(policy).iter().filter(|gap| gap.forbids).map(|gap| gap.what).collect();
        if !missing.is_empty() {
            return Err(unavailable(policy, &missing.join("; ")));
        }
        let files = ruleset(confinement).map_err(|fault| unavailable(policy, &fault.to_string()))?;
        let filters = if calls::can_be_filtered() {
            calls::filters(policy).map_err(|fault| unavailable(policy, &fault.to_string()))?
        } else {
            Vec::new()
        };
        Ok(Self { files: Some(files), filters, fenced: policy.mode != SandboxMode::Off })
    }

    /// Confines this process and all that it becomes or starts.
    ///
    /// # Errors
    /// When the kernel refuses what it said it could do.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        if self.fenced {
            powers::give_up()?;
        }
        if let Some(files) = self.files.take() {
            files.restrict_self().map_err(io::Error::other)?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// Why nothing runs, and the remedy.
fn unavailable(policy: &SandboxPolicy, why: &str) -> String {
    let network = if policy.network { "" } else { " without the network" };
    format!(
        "the sandbox `{}`{network} cannot be enforced here, so the command did not run; not held back would be: {why}. \
         Use a kernel that can, or start sluice with --sandbox off and --network on",
        policy.mode
    )
}

fn ruleset(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let policy = &confinement.policy;
    let fenced = policy.mode != SandboxMode::Off;
    let mut wanted = Ruleset::default();
    if fenced {
        wanted = wanted.handle_access(AccessFs::from_all(BEST))?.scope(Scope::from_all(BEST))?;
    }
    if !policy.network {
        // The filter refuses the sockets themselves; this holds where one is there all the same.
        wanted = wanted.handle_access(AccessNet::from_all(BEST))?;
    }
    let mut made = wanted.create()?;
    if !fenced {
        return Ok(made);
    }
    let read = AccessFs::from_read(BEST);
    // Device files are never made, whoever asks: root could make one of any disk.
    let write = AccessFs::from_all(BEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    for path in places::readable(policy) {
        made = grant(made, &path, read)?;
    }
    let terminals = match policy.mode {
        SandboxMode::WorkspaceWrite => places::TERMINALS,
        SandboxMode::ReadOnly | SandboxMode::Off => &[],
    };
    for path in places::DEVICES.iter().chain(terminals) {
        made = grant(made, Path::new(path), write | AccessFs::IoctlDev)?;
    }
    for path in places::writable(confinement) {
        made = grant(made, &path, write)?;
    }
    Ok(made)
}

/// Adds a rule for a path that exists and that no link leads to; passes over any other.
fn grant(made: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Some(place) = places::open(path) else { return Ok(made) };
    let is_folder = rustix::fs::fstat(&place).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
    let rights = if is_folder { rights } else { rights & AccessFs::from_file(BEST) };
    made.add_rule(PathBeneath::new(place, rights))
}
