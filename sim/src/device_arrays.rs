//! Device arrays whose lengths follow from the mesh. A module of the state declares each of them once, with its length:
//! what they take now, what they would take on another tree, and their growth follow from that one entry.

use comove_kernels::{Buffer, Device, KernelError, TroubledCells};

/// The numbers of a mesh that lengths of arrays follow from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Slots of the pools.
    pub(crate) slots: usize,
    /// The same, or none where no level is refined.
    pub(crate) refined_slots: usize,
    /// Slots of the coarsest grid of the Poisson solve: more where ranks share the levels, or none where no level is refined.
    pub(crate) coarsest_slots: usize,
    /// Slots of the pools, or none where mass sheets do not correct the potential.
    pub(crate) corrected_slots: usize,
    /// Groups of the fullest refined level.
    pub(crate) fullest_refined: usize,
    /// Flux planes.
    pub(crate) flux_planes: usize,
    /// Flux planes that keep sums over the sweeps of a step: all or, with uniform steps, none.
    pub(crate) summed_planes: usize,
    /// Groups whose earlier states finer ones interpolate from; none with uniform steps.
    pub(crate) earlier_groups: usize,
    /// Fields of each group, for arrays of several.
    pub(crate) fields: usize,
    /// Slots that hold the density of gas and dark matter; none without dark matter.
    pub(crate) matter_slots: usize,
}

impl Extent {
    /// Of levels with so many groups, in pools of `slots` slots, as far as the Poisson solve goes.
    ///
    /// * `coarsest`: slots of its coarsest grid, if these are more
    pub(crate) fn of_levels(groups: &[usize], [slots, coarsest]: [usize; 2], has_sheets: bool) -> Self {
        let if_so = |is_so: bool| if is_so { slots } else { 0 };
        Self {
            slots,
            refined_slots: if_so(groups.len() > 1),
            coarsest_slots: if_so(groups.len() > 1).max(coarsest),
            corrected_slots: if_so(has_sheets && groups.len() > 1),
            fullest_refined: groups.iter().skip(1).max().copied().unwrap_or(0),
            ..Self::default()
        }
    }

    /// Sets the number of fields.
    pub(crate) fn with_fields(self, fields: usize) -> Self {
        Self { fields, ..self }
    }
}

/// The name of an array and its bytes on the device.
pub(crate) type ArrayBytes = (&'static str, usize);

/// An array on a device that only grows.
pub(crate) trait DeviceArray: Sized {
    /// Of length 0.
    fn empty(device: &Device) -> Result<Self, KernelError>;

    /// Makes it at least this long; what it holds stays.
    fn grow(&mut self, device: &Device, length: usize) -> Result<(), KernelError>;

    /// Bytes of one of this length.
    fn bytes_for(length: usize) -> usize;

    /// Its bytes.
    fn bytes(&self) -> usize;
}

impl<T: Copy + Default + Send + Sync> DeviceArray for Buffer<T> {
    fn empty(device: &Device) -> Result<Self, KernelError> {
        Self::zeros(device, 0)
    }

    fn grow(&mut self, device: &Device, length: usize) -> Result<(), KernelError> {
        self.grow(device, length)
    }

    fn bytes_for(length: usize) -> usize {
        length * size_of::<T>()
    }

    fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

impl<A: DeviceArray, const N: usize> DeviceArray for [A; N] {
    fn empty(device: &Device) -> Result<Self, KernelError> {
        let arrays = (0..N).map(|_| A::empty(device)).collect::<Result<Vec<A>, _>>()?;
        Ok(arrays.try_into().unwrap_or_else(|_| unreachable!("of N arrays")))
    }

    fn grow(&mut self, device: &Device, length: usize) -> Result<(), KernelError> {
        self.iter_mut().try_for_each(|array| array.grow(device, length))
    }

    fn bytes_for(length: usize) -> usize {
        N * A::bytes_for(length)
    }

    fn bytes(&self) -> usize {
        self.iter().map(A::bytes).sum()
    }
}

impl DeviceArray for TroubledCells {
    fn empty(device: &Device) -> Result<Self, KernelError> {
        Self::new(device, 0)
    }

    fn grow(&mut self, device: &Device, length: usize) -> Result<(), KernelError> {
        self.grow(device, length)
    }

    fn bytes_for(length: usize) -> usize {
        Self::bytes_for(length)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// Makes a struct of device arrays, and of a number of fields where one is named (`of count`).
macro_rules! device_arrays {
    (
        $(#[$meta:meta])*
        $struct_visibility:vis struct $name:ident<$real:ident> $(of $count:ident)? {
            $($(#[$array_meta:meta])* $visibility:vis $array:ident: $type:ty = |$extent:ident| $length:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $struct_visibility struct $name<$real> {
            $(
                /// Number of fields in each array.
                pub(crate) $count: usize,
            )?
            $($(#[$array_meta])* $visibility $array: $type,)*
        }

        impl<$real: comove_kernels::Real> $name<$real> {
            /// With arrays of length 0.
            pub(crate) fn empty(
                device: &comove_kernels::Device,
                $($count: usize,)?
            ) -> Result<Self, comove_kernels::KernelError> {
                use $crate::device_arrays::DeviceArray;
                Ok(Self { $($count,)? $($array: <$type as DeviceArray>::empty(device)?,)* })
            }

            /// The bytes of its arrays, in the order in which they grow.
            pub(crate) fn footprint(&self) -> Vec<$crate::device_arrays::ArrayBytes> {
                use $crate::device_arrays::DeviceArray;
                vec![$((stringify!($array), DeviceArray::bytes(&self.$array)),)*]
            }

            /// The same of arrays that are as long as a mesh needs them.
            pub(crate) fn footprint_for(
                extent: &$crate::device_arrays::Extent,
                $($count: usize,)?
            ) -> Vec<$crate::device_arrays::ArrayBytes> {
                use $crate::device_arrays::DeviceArray;
                $(let extent = &extent.with_fields($count);)?
                vec![$((stringify!($array), <$type as DeviceArray>::bytes_for({ let $extent = extent; $length })),)*]
            }

            /// Makes the arrays as long as a mesh needs them.
            ///
            /// # Errors
            /// [`comove_kernels::KernelError::OutOfMemory`].
            pub(crate) fn fit(
                &mut self,
                device: &comove_kernels::Device,
                extent: &$crate::device_arrays::Extent,
            ) -> Result<(), comove_kernels::KernelError> {
                use $crate::device_arrays::DeviceArray;
                $(let extent = &extent.with_fields(self.$count);)?
                $(DeviceArray::grow(&mut self.$array, device, { let $extent = extent; $length })?;)*
                Ok(())
            }
        }
    };
}
pub(crate) use device_arrays;
