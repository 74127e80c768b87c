//! Members of a step or a snapshot that a closure reads, from its syntax tree, before it is called.
//!
//! Seen are members of the closure's own parameter, in the closure, in closures within it and in functions of the recipe
//! that get the parameter. Left to the call are a parameter that is assigned to, a map that is added to, another variable of
//! the parameter's name, and members that the closure looks for (`"gas" in step`) before it reads them.

use super::error::{Bound, Refusal, hint};
use super::reference::{Function, Member, Needs, Type};
use comove_analysis::AnalysisError;
use comove_analysis::cell_fields::field_by_name;
use comove_analysis::map::MapOptions;
use comove_sim::fields::FieldSet;
use rhai::{AST, ASTNode, Dynamic, Expr, FnPtr, ImmutableString, Map, NativeCallContext, Position, Stmt};
use std::collections::BTreeSet;

/// A member that not every run has, or a field of a snapshot, where a closure reads it.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// The option or function that has the closure, or the method of a snapshot.
    function: &'static str,
    wanted: Wanted,
    position: Position,
}

#[derive(Clone, Debug)]
enum Wanted {
    /// A member by its path, `step.gas`.
    Member(String, Needs),
    /// A cell field by its name.
    Field(String),
}

impl Use {
    /// Whether a closure that looks for these members finds out by itself whether the run has it.
    fn is_among(&self, looked_for: &BTreeSet<String>) -> bool {
        let has = |name: &str| looked_for.contains(name);
        match &self.wanted {
            Wanted::Member(path, needs) => {
                let is_of = |species: &str, of: Needs| *needs == of && has(species);
                path.rsplit('.').next().is_some_and(has)
                    || is_of("gas", Needs::Gas)
                    || is_of("dark_matter", Needs::DarkMatter)
            }
            Wanted::Field(_) => has("gas") || has("dark_matter"),
        }
    }
}

/// A run as far as it is known before it starts; `None` where it is not.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) gas: Option<bool>,
    pub(crate) dark_matter: Option<bool>,
    pub(crate) gravity: Option<bool>,
    pub(crate) comoving: Option<bool>,
    /// Fields of its gas.
    pub(crate) fields: Option<FieldSet>,
}

impl RunFacts {
    /// Whether a run is known to lack what a member needs, and what to do then.
    fn lacks(&self, needs: Needs) -> Option<&'static str> {
        let (there, message) = match needs {
            Needs::Nothing => return None,
            Needs::Gas => {
                (self.gas, "the run has no gas (gas: false); density_max, sums and totals() are of all matter")
            }
            Needs::DarkMatter => (self.dark_matter, "the run has no dark matter; set dark_matter: true in ic_gaussian"),
            Needs::Gravity => (self.gravity, "the run has no gravity; set gravity: true"),
            Needs::Comoving => (self.comoving, "the run has non-comoving coordinates; use time"),
        };
        (there == Some(false)).then_some(message)
    }

    fn check_field(&self, name: &str) -> Result<(), String> {
        let fields = match self.gas {
            Some(false) => Some(FieldSet::without_gas()),
            _ => self.fields.clone(),
        };
        if let Some(fields) = fields {
            field_by_name(name, &fields).map_err(|error| match &error {
                AnalysisError::UnknownField { known, .. } => {
                    let known: Vec<&str> = known.split(", ").collect();
                    format!("no field \"{name}\", {}", hint(name, &known, "there are"))
                }
                _ => error.to_string(),
            })?;
        }
        let needs = match name {
            "dark_matter_density" => Needs::DarkMatter,
            "potential" => Needs::Gravity,
            _ => Needs::Nothing,
        };
        self.lacks(needs).map_or(Ok(()), |message| Err(format!("field \"{name}\": {message}")))
    }
}

/// Refuses what a run is known to lack.
pub(crate) fn check(uses: &[Use], facts: &RunFacts) -> Bound<()> {
    uses.iter().try_for_each(|Use { function, wanted, position }| {
        let refused = match wanted {
            Wanted::Member(path, needs) => facts.lacks(*needs).map(|message| format!("\"{path}\": {message}")),
            Wanted::Field(name) => facts.check_field(name).err(),
        };
        refused.map_or(Ok(()), |message| Err(Refusal::error_at(function, message, *position)))
    })
}

/// What a closure reads of its one argument, a value of this type.
///
/// # Errors
/// A member that no such value has, where it stands.
pub(crate) fn uses(
    context: &NativeCallContext<'_>,
    function: &'static str,
    closure: &FnPtr,
    of: &'static Type,
) -> Bound<Vec<Use>> {
    let (looked_for, seen) = (BTreeSet::new(), BTreeSet::new());
    let mut reader = Reader { context, function, of, uses: Vec::new(), wrong: Vec::new(), looked_for, seen };
    let captured = closure.curry().len();
    reader.follow(closure.fn_name(), captured + 1, captured);
    let Reader { mut uses, wrong, looked_for, .. } = reader;
    if let Some(Wrong { message, position, .. }) =
        wrong.into_iter().find(|wrong| !looked_for.contains(wrong.name.as_str()))
    {
        return Err(Refusal::error_at(function, message, position));
    }
    uses.retain(|one| !one.is_among(&looked_for));
    Ok(uses)
}

/// The parameters of a function of the recipe, and a tree of nothing else.
pub(super) fn definition(
    context: &NativeCallContext<'_>,
    name: &str,
    count: usize,
) -> Option<(Vec<ImmutableString>, AST)> {
    context.namespaces().iter().find_map(|module| {
        let parameters = module.get_script_fn(name, count)?.params.to_vec();
        let mut alone = AST::new([], module.clone());
        alone.retain_functions(|_, _, function, n| function == name && n == count);
        Some((parameters, alone))
    })
}

struct Reader<'a, 'c> {
    context: &'a NativeCallContext<'c>,
    function: &'static str,
    of: &'static Type,
    uses: Vec<Use>,
    /// Members that do not exist.
    wrong: Vec<Wrong>,
    /// Names that are looked for in a map or a list.
    looked_for: BTreeSet<String>,
    /// Functions that have been read, and which of their parameters.
    seen: BTreeSet<(String, usize, usize)>,
}

/// A member that does not exist, where a closure reads it.
struct Wrong {
    name: String,
    message: String,
    position: Position,
}

/// A value whose members are known.
#[derive(Clone, Copy)]
enum Value {
    /// The parameter.
    Parameter(&'static Type),
    /// A map among its members.
    Map(&'static [Member]),
    /// A map that a method returns.
    Returned(&'static [Member]),
}

/// Methods of a map that add to it or empty it.
const CHANGES: [&str; 8] = ["clear", "drain", "fill_with", "mixin", "remove", "retain", "set", "+="];

impl Reader<'_, '_> {
    /// Reads a function whose parameter `n` is the value.
    fn follow(&mut self, name: &str, count: usize, n: usize) {
        if !self.seen.insert((name.to_owned(), count, n)) {
            return;
        }
        let Some((parameters, tree)) = definition(self.context, name, count) else { return };
        let parameter = parameters[n].clone();
        let is_parameter = |expression: &Expr| matches!(expression, Expr::Variable(v, _, _) if v.1 == parameter);
        let mut is_changed = false;
        tree.walk(&mut |path: &[ASTNode<'_>]| {
            is_changed |= path.last().is_some_and(|node| changes(node, &parameter, &is_parameter));
            !is_changed
        });
        if is_changed {
            return;
        }
        let mut further = Vec::new();
        tree.walk(&mut |path: &[ASTNode<'_>]| {
            match path.last() {
                // behind ?. too: a map that is there fails without the member
                Some(ASTNode::Expr(Expr::Dot(link, _, _))) if is_parameter(&link.lhs) => {
                    self.link(Value::Parameter(self.of), &link.rhs, &parameter);
                }
                // x in y calls it too
                Some(
                    ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _))
                    | ASTNode::Stmt(Stmt::FnCall(call, _)),
                ) if call.name == "contains" => {
                    self.looked_for.extend(call.args.iter().filter_map(written));
                }
                Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))) => {
                    // a closure gets what it captures before its own arguments
                    let closure = call.args.first().and_then(captured_by).filter(|_| call.name == "curry");
                    let skipped = usize::from(closure.is_some());
                    let called = closure.unwrap_or_else(|| call.name.to_string());
                    let places = (0..call.args.len() - skipped).filter(|&n| is_parameter(&call.args[n + skipped]));
                    let count = call.args.len() - skipped;
                    further.extend(places.map(|n| (called.clone(), count, n, skipped == 1)));
                }
                _ => {}
            }
            true
        });
        for (name, count, n, is_closure) in further {
            // nobody knows how many arguments a closure is called with: the one definition that there is
            let most = if is_closure { count + MOST_PARAMETERS } else { count };
            (count..=most).for_each(|count| self.follow(&name, count, n));
        }
    }

    /// Reads what follows a value behind a point.
    fn link(&mut self, value: Value, rest: &Expr, path: &str) {
        let (link, further) = match rest {
            Expr::Dot(link, _, _) => (&link.lhs, Some(&link.rhs)),
            Expr::Index(link, _, _) => (&link.lhs, None),
            link => (link, None),
        };
        let found = match link {
            Expr::Property(property, position) => {
                let found = self.property(value, &property.2, path, *position);
                found.filter(|(members, _)| !members.is_empty()).map(|(members, path)| (Value::Map(members), path))
            }
            Expr::MethodCall(call, position) => {
                let Value::Parameter(of) = value else { return };
                let Some(method) = of.methods.iter().find(|method| method.name == call.name) else { return };
                self.fields(method, &call.args, *position);
                Some((Value::Returned(method.gives), format!("{path}.{}()", call.name)))
            }
            _ => None,
        };
        if let (Some((value, path)), Some(further)) = (found, further) {
            self.link(value, further, &path);
        }
    }

    /// The members of a property's value, and its path.
    fn property(
        &mut self,
        value: Value,
        name: &str,
        path: &str,
        position: Position,
    ) -> Option<(&'static [Member], String)> {
        let members = match value {
            Value::Parameter(of) => of.members,
            Value::Map(members) | Value::Returned(members) => members,
        };
        if let Some(member) = members.iter().find(|member| member.name == name) {
            let path = format!("{path}.{name}");
            if member.needs != Needs::Nothing {
                let wanted = Wanted::Member(path.clone(), member.needs);
                self.uses.push(Use { function: self.function, wanted, position });
            }
            return Some((member.members, path));
        }
        let message = match value {
            Value::Parameter(of) if of.properties.iter().all(|(property, ..)| *property != name) => unknown(of, name),
            Value::Map(members) => {
                let names: Vec<&str> = members.iter().map(|member| member.name).collect();
                format!("{path} has no property \"{name}\", {}", hint(name, &names, "there are"))
            }
            _ => return None,
        };
        self.wrong.push(Wrong { name: name.to_owned(), message, position });
        None
    }

    /// The field that a method of a snapshot is called with, where it is written there.
    fn fields(&mut self, method: &'static Function, arguments: &[Expr], position: Position) {
        let field = match (method.name, arguments) {
            ("field" | "value" | "statistics" | "histogram", [Expr::StringConstant(name, at), ..]) => {
                Some((name.to_string(), *at))
            }
            ("slice" | "projection", []) => Some((MapOptions::default().field, position)),
            ("slice" | "projection", [options]) => field_in(options, position),
            _ => None,
        };
        if let Some((name, position)) = field {
            self.uses.push(Use { function: method.name, wanted: Wanted::Field(name), position });
        }
    }
}

/// What one kind of value calls otherwise than another.
const OTHERWISE: [[&str; 3]; 2] = [["Snapshot", "z", "redshift"], ["Step", "redshift", "z"]];

/// A member that a value of this type does not have, with the nearest that it has.
fn unknown(of: &Type, name: &str) -> String {
    let methods = of.methods.iter().filter(|method| !method.signatures.is_empty());
    let methods: Vec<String> = methods.map(|method| format!("{}(…)", method.name)).collect();
    let names = of.members.iter().map(|member| member.name).chain(of.properties.iter().map(|(name, ..)| *name));
    let names: Vec<&str> = names.chain(methods.iter().map(String::as_str)).collect();
    let otherwise = OTHERWISE.iter().find(|[kind, theirs, _]| (*kind, *theirs) == (of.name, name));
    let wanted = otherwise.map_or(name, |[_, _, ours]| *ours);
    format!("a {} has no property \"{name}\", {}", of.name.to_lowercase(), hint(wanted, &names, "there are"))
}

/// Up to so many parameters of a closure are tried.
const MOST_PARAMETERS: usize = 8;

/// A text that is written out.
fn written(expression: &Expr) -> Option<String> {
    match expression {
        Expr::StringConstant(text, _) => Some(text.to_string()),
        _ => None,
    }
}

/// Whether a node assigns to the parameter or adds to it, or declares another variable of its name: which of both is read
/// then is not followed.
fn changes(node: &ASTNode<'_>, name: &ImmutableString, is_parameter: &impl Fn(&Expr) -> bool) -> bool {
    let begins = |expression: &Expr| match expression {
        Expr::Dot(link, _, _) | Expr::Index(link, _, _) => is_parameter(&link.lhs),
        other => is_parameter(other),
    };
    match node {
        ASTNode::Stmt(Stmt::Assignment(assignment)) => begins(&assignment.1.lhs),
        ASTNode::Stmt(Stmt::Var(declared, _, _)) => declared.0.name == *name,
        ASTNode::Stmt(Stmt::For(of, _)) => of.0.name == *name || of.1.as_ref().is_some_and(|count| count.name == *name),
        ASTNode::Stmt(Stmt::TryCatch(flow, _)) => is_parameter(&flow.expr),
        ASTNode::Expr(Expr::Dot(link, _, _)) if is_parameter(&link.lhs) => {
            let method = match &link.rhs {
                Expr::Dot(link, _, _) => &link.lhs,
                other => other,
            };
            matches!(method, Expr::MethodCall(call, _) if CHANGES.contains(&call.name.as_str()))
        }
        _ => false,
    }
}

/// The name of a closure, if the expression is one.
fn captured_by(expression: &Expr) -> Option<String> {
    let Expr::DynamicConstant(value, _) = expression else { return None };
    Some(value.read_lock::<FnPtr>()?.fn_name().to_owned())
}

/// The field in the options of a map; that of a map without options where they do not state it.
fn field_in(options: &Expr, otherwise: Position) -> Option<(String, Position)> {
    let default = || Some((MapOptions::default().field, otherwise));
    match options {
        Expr::Map(map, _) => match map.0.iter().find(|(key, _)| key.name == "field") {
            None => default(),
            Some((_, Expr::StringConstant(name, at))) => Some((name.to_string(), *at)),
            Some(_) => None,
        },
        Expr::DynamicConstant(value, at) => {
            let map = value.read_lock::<Map>()?;
            map.get("field").map_or_else(default, |name| Some((text(name)?, *at)))
        }
        _ => None,
    }
}

fn text(value: &Dynamic) -> Option<String> {
    value.clone().into_string().ok()
}
