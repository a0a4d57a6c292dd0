//! Tools by scope: what is registered, and what of it is visible.
//!
//! Tools are mounted on contexts: a root's tools are global, a child's are that scope's own. Nearest scope wins a
//! name; a scope's own layer is never filtered by restrictions. What is restricted away is absent from
//! the schemas and cannot be resolved. Who is told of a change is in [`change`].

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thiserror::Error;

use crate::context::{Context, ContextFault, Registration};
use crate::json::Json;
use crate::schema::{ArgumentSchema, ForeignSchema, Schema, SchemaViolation};
use crate::seam::model::ToolSchema;
use crate::tool::{SchemaOrigin, Tool};

pub(crate) use change::ended;
pub use change::{Change, ToolsChange, ToolsChanged};

/// The name kept for the program tool; nobody may register it.
pub const RESERVED: &str = "run_code";

/// A registered tool with its compiled schemas.
pub struct Definition {
    tool: Arc<dyn Tool>,
    /// Read once, at registration: what models are told is what was checked.
    told: ToolSchema,
    parameters: ArgumentSchema,
    output: ArgumentSchema,
}

impl Definition {
    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &dyn Tool {
        &*self.tool
    }

    /// Its argument schema.
    #[must_use]
    pub fn parameters(&self) -> &ArgumentSchema {
        &self.parameters
    }

    /// Its value schema.
    #[must_use]
    pub fn output(&self) -> &ArgumentSchema {
        &self.output
    }

    /// How a model is told of it: name, description and parameters, nothing else.
    #[must_use]
    pub fn schema(&self) -> ToolSchema {
        self.told.clone()
    }

    fn name(&self) -> &str {
        &self.told.name
    }

    /// The names that its coming and going concerns: its own.
    pub(crate) fn names(&self) -> &[String] {
        std::slice::from_ref(&self.told.name)
    }
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Definition").field(&self.name()).finish()
    }
}

/// Why a tool or a restriction was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterFault {
    /// The scope has ended.
    #[error(transparent)]
    Context(#[from] ContextFault),
    /// The reserved name.
    #[error("the tool name `{RESERVED}` is reserved")]
    Reserved,
    /// This very layer has a tool of that name.
    #[error("a tool named `{name}` is already registered in the scope `{scope}`; a child scope may shadow it")]
    Duplicate {
        /// The name.
        name: String,
        /// The scope.
        scope: String,
    },
    /// A schema is not in the supported subset (`UNSUPPORTED_SCHEMA`).
    #[error("the {which} schema of the tool `{name}` is not supported: {}", violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Schema {
        /// The tool.
        name: String,
        /// `parameters` or `output`.
        which: &'static str,
        /// All that is wrong with it.
        violations: Vec<SchemaViolation>,
    },
    /// A foreign schema does not compile.
    #[error("the {which} schema of the tool `{name}` does not compile: {why}")]
    Foreign {
        /// The tool.
        name: String,
        /// `parameters` or `output`.
        which: &'static str,
        /// Why.
        why: String,
    },
    /// A time budget that is no time.
    #[error("the tool `{name}` has a time budget of zero")]
    Timeout {
        /// The tool.
        name: String,
    },
    /// A restriction that says nothing, or names what it may not name.
    #[error("a restriction in the scope `{scope}` {why}")]
    Restriction {
        /// The scope.
        scope: String,
        /// What is wrong.
        why: String,
    },
    /// An observer of `tools/change` failed; the registration was taken back.
    #[error("{entry} was taken back, because an observer of `tools/change` failed: {what}")]
    Observer {
        /// What was to be registered: a tool with its name, or a restriction with its scope.
        entry: String,
        /// What the observer said.
        what: String,
    },
}

/// A filter on what a scope and its descendants inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    allow: Option<BTreeSet<String>>,
    deny: BTreeSet<String>,
}

impl Restriction {
    fn permits(&self, name: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(name)) && !self.deny.contains(name)
    }

    /// Every name it mentions, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.allow.iter().flatten().chain(&self.deny).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }
}

/// Registers a tool on a scope.
///
/// # Errors
/// A [`RegisterFault`]; nothing is registered then.
pub fn register(context: &Context, tool: Arc<dyn Tool>) -> Result<Registration, RegisterFault> {
    let name = tool.name().to_owned();
    if name == RESERVED {
        return Err(RegisterFault::Reserved);
    }
    if tool.timeout().is_some_and(|t| t.is_zero()) {
        return Err(RegisterFault::Timeout { name });
    }
    let told =
        ToolSchema { name: name.clone(), description: tool.description().to_owned(), parameters: tool.parameters() };
    let parameters = compile(&*tool, &told.parameters, "parameters")?;
    let output = compile(&*tool, &tool.output(), "output")?;
    let definition = Arc::new(Definition { tool, told, parameters, output });
    let taken = |own: &[Arc<Definition>]| own.iter().any(|d| d.name() == name);
    let registration = context
        .mount_tool(definition, taken)?
        .ok_or_else(|| RegisterFault::Duplicate { name: name.clone(), scope: context.name().to_owned() })?;
    change::announce(context, &registration, Change::Registered, std::slice::from_ref(&name))
        .map_err(|what| RegisterFault::Observer { entry: format!("the tool `{name}`"), what })?;
    Ok(registration)
}

fn compile(tool: &dyn Tool, json: &Json, which: &'static str) -> Result<ArgumentSchema, RegisterFault> {
    match tool.schema_origin() {
        SchemaOrigin::Own => Schema::compile(json)
            .map(ArgumentSchema::Strict)
            .map_err(|violations| RegisterFault::Schema { name: tool.name().to_owned(), which, violations }),
        SchemaOrigin::Foreign => ForeignSchema::compile(json)
            .map(ArgumentSchema::Foreign)
            .map_err(|why| RegisterFault::Foreign { name: tool.name().to_owned(), which, why }),
    }
}

/// Restricts what a scope inherits. Needs `allow`, `deny` or both; may name only what is inherited now.
///
/// # Errors
/// A [`RegisterFault`].
pub fn restrict(
    context: &Context,
    allow: Option<Vec<String>>,
    deny: Vec<String>,
) -> Result<Registration, RegisterFault> {
    let fault = |why: String| RegisterFault::Restriction { scope: context.name().to_owned(), why };
    if context.is_root() {
        return Err(fault("needs a child scope: the root inherits nothing".to_owned()));
    }
    if allow.is_none() && deny.is_empty() {
        return Err(fault("names neither what to allow nor what to deny".to_owned()));
    }
    let inherited = inherited(context);
    for name in allow.iter().flatten().chain(&deny) {
        if name == RESERVED || !inherited.contains_key(name.as_str()) {
            return Err(fault(format!("names `{name}`, which the scope does not inherit")));
        }
    }
    let restriction = Restriction { allow: allow.map(|a| a.into_iter().collect()), deny: deny.into_iter().collect() };
    let names = restriction.names();
    let registration = context.mount_restriction(restriction)?;
    change::announce(context, &registration, Change::Restricted, &names).map_err(|what| RegisterFault::Observer {
        entry: format!("a restriction in the scope `{}`", context.name()),
        what,
    })?;
    Ok(registration)
}

fn inherited(context: &Context) -> BTreeMap<String, Arc<Definition>> {
    let mut layers = context.tool_layers();
    layers.pop();
    merge(layers.into_iter().map(|layer| layer.tools))
}

fn merge(layers: impl Iterator<Item = Vec<Arc<Definition>>>) -> BTreeMap<String, Arc<Definition>> {
    let mut out = BTreeMap::new();
    for layer in layers {
        for definition in layer {
            out.insert(definition.name().to_owned(), definition);
        }
    }
    out
}

/// What a scope sees, by name in lexicographic order.
#[must_use]
pub fn visible(context: &Context) -> BTreeMap<String, Arc<Definition>> {
    let mut layers = context.tool_layers();
    let restrictions: Vec<_> = layers.iter().flat_map(|layer| layer.restrictions.clone()).collect();
    let own = layers.pop().map(|layer| layer.tools).unwrap_or_default();
    let mut seen = merge(layers.into_iter().map(|layer| layer.tools));
    seen.retain(|name, _| restrictions.iter().all(|r| r.permits(name)));
    for definition in own {
        seen.insert(definition.name().to_owned(), definition);
    }
    seen
}

/// The tool that a name means in a scope.
#[must_use]
pub fn resolve(context: &Context, name: &str) -> Option<Arc<Definition>> {
    visible(context).remove(name)
}

/// The schemas of a scope's tools in wire order, detached from the registry.
#[must_use]
pub fn schemas(context: &Context) -> Vec<ToolSchema> {
    visible(context).values().map(|d| d.schema()).collect()
}
