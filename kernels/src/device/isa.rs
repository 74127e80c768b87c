//! The instruction set, chosen at run time.
//!
//! A kernel is written once, as a [`Kernel`] whose `run` and everything below it is `#[inline(always)]`; [`Isa::run`]
//! inlines it into a function that is compiled for one instruction set. Wider registers only do more cells at a time:
//! no fused multiply-add is formed, no sum is reordered, so the bits are the same with each of them.

/// Work that is compiled once for every instruction set.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Does the work. Mark it, and all it calls in its loops, `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// An instruction set that the kernels are built for. Values come from [`Isa::best`] and [`Isa::available`] only, so
/// that one that is held is one that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// What every processor of the target has: SSE2 on x86-64, NEON on 64-bit ARM.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The instruction sets of this processor, the best last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut sets = vec![Self(Set::Baseline)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                sets.push(Self(Set::Avx2));
            }
            if has_avx512() {
                sets.push(Self(Set::Avx512));
            }
        }
        sets
    }

    /// The best instruction set of this processor.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Set::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Set::Avx2);
            }
        }
        Self(Set::Baseline)
    }

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
        }
    }

    /// Runs a kernel with these instructions.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Baseline => run_baseline(kernel),
            // SAFETY: such a value exists only where the processor has these instructions.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

/// Makes this crate compile kernels, given as their types in single and in double precision, so that the crates that use
/// it link these copies: they are built several times over, for tests, with MPI, with CUDA.
macro_rules! compiled_here {
    ($($kernel:ty),+) => {
        $(const _: () = {
            #[used]
            static COMPILED: fn(
                $crate::device::isa::Isa,
                $kernel,
            ) -> <$kernel as $crate::device::isa::Kernel>::Output = |isa, kernel| isa.run(kernel);
        };)+
    };
}
pub(crate) use compiled_here;

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
}

// `inline(never)` also lets the crates that use this one link the copies that it has compiled (`compiled_here`).
#[inline(never)]
fn run_baseline<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline(never)]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
#[inline(never)]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// The name of the best instruction set of this processor.
pub fn name() -> &'static str {
    Isa::best().name()
}
