// libcufft.so.12 for the emulated GPU: sums over all pairs of values and modes along each axis.
#include <cmath>
#include <complex>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace {

using Mode = std::complex<double>;

/// Lengths along z, y, x.
struct Plan {
    size_t nz, ny, nx;

    size_t modes() const { return nx / 2 + 1; } // in a row
};

std::mutex lock;
std::map<int, Plan> plans;

Plan plan_of(int handle) {
    const std::lock_guard held(lock);
    return plans.at(handle);
}

/// One line of n values, `step` apart, in place.
void transform(Mode *line, size_t n, size_t step, double sign) {
    std::vector<Mode> values(n), roots(n);
    for (size_t k = 0; k < n; k++) {
        values[k] = line[k * step];
        roots[k] = std::polar(1.0, sign * 2.0 * M_PI * double(k) / double(n));
    }
    for (size_t k = 0; k < n; k++) {
        Mode sum = 0.0;
        for (size_t i = 0; i < n; i++) sum += values[i] * roots[i * k % n];
        line[k * step] = sum;
    }
}

/// Along y and z, of rows of modes.
void transform_columns(const Plan &plan, Mode *modes, double sign) {
    const size_t row = plan.modes(), plane = row * plan.ny;
    for (size_t z = 0; z < plan.nz; z++)
        for (size_t x = 0; x < row; x++) transform(modes + z * plane + x, plan.ny, row, sign);
    for (size_t at = 0; at < plane; at++) transform(modes + at, plan.nz, plane, sign);
}

} // namespace

extern "C" {

int cufftGetVersion(int *version) { return *version = 12000, 0; }
int cufftPlan3d(int *handle, int nz, int ny, int nx, int) {
    static int last = 0;
    const std::lock_guard held(lock);
    plans[*handle = ++last] = {size_t(nz), size_t(ny), size_t(nx)};
    return 0;
}
int cufftSetStream(int, void *) { return 0; }
int cufftDestroy(int handle) {
    const std::lock_guard held(lock);
    return plans.erase(handle) ? 0 : 1;
}
int cufftExecD2Z(int handle, double *values, Mode *modes) {
    const Plan plan = plan_of(handle);
    std::vector<Mode> line(plan.nx);
    for (size_t row = 0; row < plan.ny * plan.nz; row++) {
        // rows of values are as long as those of modes, which may lie in the same place
        const double *from = values + 2 * plan.modes() * row;
        for (size_t x = 0; x < plan.nx; x++) line[x] = from[x];
        transform(line.data(), plan.nx, 1, -1.0);
        for (size_t k = 0; k < plan.modes(); k++) modes[plan.modes() * row + k] = line[k];
    }
    transform_columns(plan, modes, -1.0);
    return 0;
}
int cufftExecZ2D(int handle, Mode *modes, double *values) {
    const Plan plan = plan_of(handle);
    transform_columns(plan, modes, 1.0);
    std::vector<Mode> line(plan.nx);
    for (size_t row = 0; row < plan.ny * plan.nz; row++) {
        const Mode *from = modes + plan.modes() * row;
        for (size_t k = 0; k < plan.nx; k++) line[k] = k < plan.modes() ? from[k] : std::conj(from[plan.nx - k]);
        transform(line.data(), plan.nx, 1, 1.0);
        for (size_t x = 0; x < plan.nx; x++) values[2 * plan.modes() * row + x] = line[x].real();
    }
    return 0;
}

} // extern "C"
