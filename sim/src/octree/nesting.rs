//! Proper nesting: around a refined patch, all 26 neighbouring patches exist (paper, section 2.1).

use super::key::Key;
use super::tree::Octree;
use std::collections::BTreeSet;

/// Adds the coarser groups that the wanted ones need: for every group, the groups one level coarser that hold the 27
/// patches around and including the patch it refines. Works from the finest level down, so that nothing wanted is dropped.
///
/// `wanted[ℓ]` are keys of level ℓ (level 0 is ignored: it is always complete); `tree` gives the box and its boundary.
pub fn nest(tree: &Octree, wanted: &mut [BTreeSet<Key>]) {
    for level in (2..wanted.len()).rev() {
        let (coarser, finer) = wanted.split_at_mut(level);
        for &key in &finer[0] {
            for d in 0..27 {
                let offset = [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1];
                let parent = tree.neighbour(key, offset).and_then(|n| n.parent());
                coarser[level - 1].extend(parent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Boundary;

    #[test]
    fn a_corner_group_needs_the_groups_across_the_corner_and_the_box_edge() {
        let tree = Octree::new([2, 2, 2], Boundary::Periodic);
        let mut wanted = vec![BTreeSet::new(), BTreeSet::new(), BTreeSet::from([Key::new(2, [0, 0, 0])])];
        nest(&tree, &mut wanted);
        // patches −1 and 0, 1 on each axis: groups 3 and 0 of level 1 on each axis
        assert_eq!(wanted[1].len(), 8);
        assert!(wanted[1].contains(&Key::new(1, [3, 3, 3])) && wanted[1].contains(&Key::new(1, [0, 0, 0])));
        let open = Octree::new([2, 2, 2], Boundary::Outflow);
        let mut wanted = vec![BTreeSet::new(), BTreeSet::new(), BTreeSet::from([Key::new(2, [0, 0, 0])])];
        nest(&open, &mut wanted);
        assert_eq!(wanted[1].len(), 1);
    }
}
