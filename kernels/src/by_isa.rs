//! Runs an inlined body compiled for the best instruction set of this processor.

/// Defines a function that calls `$body::<T, LANES>` compiled for AVX-512, AVX2 or the baseline, LANES being the values
/// that fill a register there. The body and all it calls must be `#[inline(always)]`; it may use LANES to cut its
/// loops but not to order its sums, so that the bits are the same everywhere.
macro_rules! by_isa {
    ($visibility:vis fn $name:ident<T: Real>($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $body:ident) => {
        $visibility fn $name<T: $crate::real::Real>($($argument: $kind),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn wide<T: $crate::real::Real>($($argument: $kind),*) $(-> $result)? {
                    if T::BYTES == 4 { $body::<T, 16>($($argument),*) } else { $body::<T, 8>($($argument),*) }
                }
                #[target_feature(enable = "avx2")]
                fn medium<T: $crate::real::Real>($($argument: $kind),*) $(-> $result)? {
                    if T::BYTES == 4 { $body::<T, 8>($($argument),*) } else { $body::<T, 4>($($argument),*) }
                }
                match $crate::isa::name() {
                    // SAFETY: `isa::name` has just found these instruction sets on this processor.
                    "avx512" => return unsafe { wide($($argument),*) },
                    // SAFETY: as above.
                    "avx2" => return unsafe { medium($($argument),*) },
                    _ => {}
                }
            }
            if T::BYTES == 4 { $body::<T, 4>($($argument),*) } else { $body::<T, 2>($($argument),*) }
        }
    };
}

pub(crate) use by_isa;
