//! Octree and fields on the host: what an initial condition ends as and what a snapshot holds.

use crate::dark_matter::HostParticles;
use crate::gas::fields::{FieldSet, Storage};
use crate::mesh::Octree;
use comove_kernels::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES};
use ndarray::{ArrayView3, ArrayView4};

/// An octree with its gas, in `f64` (exact for either precision of a run).
#[derive(Clone, Debug)]
pub struct HostState {
    /// The groups.
    pub tree: Octree,
    /// Fluid, comoving code units, groups in key order: `[groups, 6, 16, 16, 16]` (k, j, i; i fastest). Patches that
    /// have children hold restricted values. Empty where there is no gas.
    pub fluid: Vec<f64>,
    /// Potential φ̃ in (100 km/s)², `[groups, 16, 16, 16]`; empty where none was solved.
    pub potential: Vec<f64>,
    /// Densities of the passive scalars ρ̃X, each `[groups, 16, 16, 16]`, in the order of the
    /// [`FieldSet`](crate::fields::FieldSet).
    pub scalars: Vec<Vec<f64>>,
    /// Density of dark matter ρ̃, `[groups, 16, 16, 16]`; empty where there is none, or none was found yet.
    pub dark_matter: Vec<f64>,
    /// Dark matter, if there is some.
    pub particles: Option<HostParticles>,
}

impl HostState {
    /// A state of zeros on `tree`, without potential and scalars.
    pub fn zeros(tree: Octree) -> Self {
        Self::zeros_of(tree, &FieldSet::default())
    }

    /// The same with these fields of the gas.
    pub fn zeros_of(tree: Octree, fields: &FieldSet) -> Self {
        let fluid = vec![0.0; if fields.has_gas() { tree.group_count() * GROUP_VALUES } else { 0 }];
        let scalars = vec![vec![0.0; tree.group_count() * GROUP_CELLS]; fields.scalars().len()];
        Self { fluid, scalars, ..Self::without_fields(tree) }
    }

    /// A state on `tree` whose arrays are empty.
    pub fn without_fields(tree: Octree) -> Self {
        let none = Vec::new;
        Self { tree, fluid: none(), potential: none(), scalars: Vec::new(), dark_matter: none(), particles: None }
    }

    /// Drops the groups of levels above `finest`; the patches they refined hold their means. Returns how many went.
    pub fn drop_finer(&mut self, finest: u8) -> usize {
        let groups = self.tree.group_count();
        self.tree = self.tree.without_finer(finest);
        // key order goes level by level
        self.fluid.truncate(self.tree.group_count() * GROUP_VALUES);
        let cells = self.tree.group_count() * GROUP_CELLS;
        self.potential.truncate(cells);
        self.dark_matter.truncate(cells);
        self.scalars.iter_mut().for_each(|scalar| scalar.truncate(cells));
        self.particles = self.particles.take().map(|particles| particles.in_file_order(&self.tree));
        groups - self.tree.group_count()
    }

    /// One fluid field of one group (index in key order), `[k, j, i]`.
    pub fn field(&self, group: usize, field: usize) -> ArrayView3<'_, f64> {
        let start = (group * FIELDS + field) * GROUP_CELLS;
        ArrayView3::from_shape((GROUP, GROUP, GROUP), &self.fluid[start..start + GROUP_CELLS]).expect("16³ values")
    }

    /// All fluid fields of one group, `[field, k, j, i]`.
    pub fn group(&self, group: usize) -> ArrayView4<'_, f64> {
        let start = group * GROUP_VALUES;
        ArrayView4::from_shape((FIELDS, GROUP, GROUP, GROUP), &self.fluid[start..start + GROUP_VALUES])
            .expect("6 × 16³ values")
    }

    /// The potential of one group, `[k, j, i]`; `None` where none was solved.
    pub fn potential(&self, group: usize) -> Option<ArrayView3<'_, f64>> {
        let start = group * GROUP_CELLS;
        let values = self.potential.get(start..start + GROUP_CELLS)?;
        Some(ArrayView3::from_shape((GROUP, GROUP, GROUP), values).expect("16³ values"))
    }

    /// The array that holds a field, the values of a group in it, and where among these the field's begin.
    pub(crate) fn values_mut(&mut self, storage: Storage) -> (&mut [f64], usize, usize) {
        match storage {
            Storage::Fluid(index) => (&mut self.fluid, GROUP_VALUES, index * GROUP_CELLS),
            Storage::Scalar(index) => (&mut self.scalars[index], GROUP_CELLS, 0),
            Storage::DarkMatter => (&mut self.dark_matter, GROUP_CELLS, 0),
            Storage::Potential => (&mut self.potential, GROUP_CELLS, 0),
        }
    }

    /// The same to read.
    pub(crate) fn values(&self, storage: Storage) -> (&[f64], usize, usize) {
        match storage {
            Storage::Fluid(index) => (&self.fluid, GROUP_VALUES, index * GROUP_CELLS),
            Storage::Scalar(index) => (&self.scalars[index], GROUP_CELLS, 0),
            Storage::DarkMatter => (&self.dark_matter, GROUP_CELLS, 0),
            Storage::Potential => (&self.potential, GROUP_CELLS, 0),
        }
    }
}
