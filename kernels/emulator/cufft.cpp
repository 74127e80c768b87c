// libcufft.so.12 for the emulated GPU: sums over all pairs of values and modes along each axis. Plans of one axis from
// complex to complex numbers, and of two between real and complex ones, in place. As the real one may, it rounds otherwise
// for some batches and strides.
#include <cmath>
#include <complex>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace {

using Mode = std::complex<double>;

constexpr int Z2Z = 0x69, D2Z = 0x6a, Z2D = 0x6c;
constexpr int INVALID_PLAN = 1, INVALID_VALUE = 4;

/// How the arrays of a batch lie: values in a row as stored, from one of a line to the next, from one array to the next.
struct Stored {
    size_t row, step, distance;
};

/// `count` arrays of ny rows of nx values; ny is 1 for a plan of one axis.
struct Plan {
    int kind;
    size_t ny, nx;
    Stored values, modes; // both the same from complex to complex numbers
    size_t count;

    /// Whether it sums from the last term on.
    bool downwards() const { return count * modes.step % 3 == 0; }
};

std::mutex lock;
std::map<int, Plan> plans;

/// The plan of this handle if it is of that kind.
const Plan *plan_of(int handle, int kind) {
    const std::lock_guard held(lock);
    const auto found = plans.find(handle);
    return found != plans.end() && found->second.kind == kind ? &found->second : nullptr;
}

/// One line of n values, `step` apart, in place.
void transform(const Plan &plan, Mode *line, size_t n, size_t step, double sign) {
    std::vector<Mode> values(n), roots(n);
    for (size_t k = 0; k < n; k++) {
        values[k] = line[k * step];
        roots[k] = std::polar(1.0, sign * 2.0 * M_PI * double(k) / double(n));
    }
    for (size_t k = 0; k < n; k++) {
        Mode sum = 0.0;
        for (size_t term = 0; term < n; term++) {
            const size_t i = plan.downwards() ? n - 1 - term : term;
            sum += values[i] * roots[i * k % n];
        }
        line[k * step] = sum;
    }
}

/// Lines across the rows of modes of one array.
void transform_columns(const Plan &plan, Mode *modes, double sign) {
    for (size_t x = 0; x <= plan.nx / 2; x++) transform(plan, modes + x, plan.ny, plan.modes.row, sign);
}

} // namespace

extern "C" {

int cufftGetVersion(int *version) { return *version = 12000, 0; }
int cufftCreate(int *handle) {
    static int last = 0;
    const std::lock_guard held(lock);
    plans[*handle = ++last] = {};
    return 0;
}
int cufftMakePlanMany(int handle, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                      int odist, int type, int batch, size_t *bytes) {
    const std::lock_guard held(lock);
    if (plans.find(handle) == plans.end()) return INVALID_PLAN;
    const Stored from = {size_t(inembed[rank - 1]), size_t(istride), size_t(idist)};
    const Stored to = {size_t(onembed[rank - 1]), size_t(ostride), size_t(odist)};
    const bool is_known = rank == 1 ? type == Z2Z : rank == 2 && istride == 1 && ostride == 1 && type != Z2Z;
    if (!is_known) return INVALID_VALUE;
    const size_t ny = rank == 1 ? 1 : n[0];
    plans[handle] = {type, ny, size_t(n[rank - 1]), type == Z2D ? to : from, type == Z2D ? from : to, size_t(batch)};
    *bytes = 0;
    return 0;
}
int cufftSetAutoAllocation(int, int) { return 0; }
int cufftSetWorkArea(int, void *) { return 0; }
int cufftSetStream(int, void *) { return 0; }
int cufftDestroy(int handle) {
    const std::lock_guard held(lock);
    return plans.erase(handle) ? 0 : INVALID_PLAN;
}
int cufftExecZ2Z(int handle, Mode *from, Mode *to, int direction) {
    const Plan *plan = plan_of(handle, Z2Z);
    if (!plan || from != to) return INVALID_VALUE;
    for (size_t n = 0; n < plan->count; n++)
        transform(*plan, to + n * plan->modes.distance, plan->nx, plan->modes.step, direction);
    return 0;
}
int cufftExecD2Z(int handle, double *from, Mode *to) {
    const Plan *plan = plan_of(handle, D2Z);
    if (!plan) return INVALID_VALUE;
    std::vector<Mode> line(plan->nx);
    for (size_t n = 0; n < plan->count; n++) {
        Mode *modes = to + n * plan->modes.distance;
        for (size_t y = 0; y < plan->ny; y++) {
            // rows of values are as long as those of modes, which may lie in the same place
            const double *values = from + n * plan->values.distance + y * plan->values.row;
            for (size_t x = 0; x < plan->nx; x++) line[x] = values[x];
            transform(*plan, line.data(), plan->nx, 1, -1.0);
            for (size_t k = 0; k <= plan->nx / 2; k++) modes[y * plan->modes.row + k] = line[k];
        }
        transform_columns(*plan, modes, -1.0);
    }
    return 0;
}
int cufftExecZ2D(int handle, Mode *from, double *to) {
    const Plan *plan = plan_of(handle, Z2D);
    if (!plan) return INVALID_VALUE;
    std::vector<Mode> line(plan->nx);
    for (size_t n = 0; n < plan->count; n++) {
        Mode *modes = from + n * plan->modes.distance;
        transform_columns(*plan, modes, 1.0);
        for (size_t y = 0; y < plan->ny; y++) {
            const Mode *row = modes + y * plan->modes.row;
            for (size_t k = 0; k < plan->nx; k++)
                line[k] = k <= plan->nx / 2 ? row[k] : std::conj(row[plan->nx - k]);
            transform(*plan, line.data(), plan->nx, 1, 1.0);
            double *values = to + n * plan->values.distance + y * plan->values.row;
            for (size_t x = 0; x < plan->nx; x++) values[x] = line[x].real();
        }
    }
    return 0;
}

} // extern "C"
