// A criterion as a small program, for one cell: the twin of op.rs and evaluate.rs.
#pragma once
#include "level/ghosts/ghosts.cuh"
#include "operations/flag/level.cuh"
#include "point/elementary.cuh"

/// In the order of op.rs.
enum class Op : uint8_t {
    Density,
    Overdensity,
    MatterDensity,
    MatterOverdensity,
    DarkMatterDensity,
    Pressure,
    VelocityX,
    VelocityY,
    VelocityZ,
    Speed,
    Energy,
    Entropy,
    SoundSpeed,
    DivergenceOfVelocity,
    Level,
    ScaleFactor,
    PositionX,
    PositionY,
    PositionZ,
    CellWidth,
    Constant,
    Negate,
    Not,
    Absolute,
    SquareRoot,
    Logarithm,
    Exponential,
    Truncate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Minimum,
    Maximum,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Select,
};

struct Instruction {
    Op op;
    uint8_t to;
    uint8_t from[3];
    double constant;
};

/// The result of an operation that is neither a field nor a constant.
INLINE double apply(Op op, double x, double y, double z) {
    switch (op) {
    case Op::Negate: return -x;
    case Op::Not: return 1.0 - x;
    case Op::Absolute: return absolute(x);
    case Op::SquareRoot: return square_root(x);
    case Op::Logarithm: return ln(x);
    case Op::Exponential: return exp_of(x);
    case Op::Truncate: return trunc(x);
    case Op::Add: return x + y;
    case Op::Subtract: return x - y;
    case Op::Multiply: return x * y;
    case Op::Divide: return x / y;
    case Op::Remainder: return fmod(x, y);
    case Op::Power: return pow_of(x, y);
    case Op::Minimum: return x <= y ? x : y;
    case Op::Maximum: return x >= y ? x : y;
    case Op::Less: return x < y ? 1.0 : 0.0;
    case Op::LessOrEqual: return x <= y ? 1.0 : 0.0;
    case Op::Equal: return x == y ? 1.0 : 0.0;
    case Op::NotEqual: return x < y || x > y ? 1.0 : 0.0;
    case Op::And: return x * y;
    case Op::Or: return x > y ? x : y;
    case Op::Select: return x > 0.0 ? y : z;
    default: return 0.0;
    }
}

/// Density of dark matter in a cell: of all matter less the gas, if there is gas.
template <typename T> INLINE T dark_matter(const T *density, const T *group, int at) {
    return group ? density[at] - group[DENSITY * GROUP_CELLS + at] : density[at];
}

/// The cell that a program looks at.
template <typename T> struct CellFields {
    const FlagLevel<T> &level;
    const Ghosts<T> &ghosts;
    /// Of the group, [6, 16, 16, 16]; null without gas.
    const T *group;
    /// Density of all matter in the group, [16, 16, 16].
    const T *density;
    /// Of the group, in groups of its level.
    const uint32_t (&coordinate)[3];
    int i, j, k;

    INLINE double value(int field) const { return double(group[field * GROUP_CELLS + cell(i, j, k)]); }
    INLINE double velocity(int axis) const { return value(MOMENTUM + axis) / value(DENSITY); }
    INLINE double centre(int axis, int n) const {
        return (double(coordinate[axis]) * double(GROUP) + double(n) + 0.5) * level.cell_width;
    }

    INLINE double thermal() const {
        T u[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = group[f * GROUP_CELLS + cell(i, j, k)];
        return double(pressure(u, level.eos));
    }

    INLINE double divergence() const {
        double sum = 0.0;
#pragma unroll 1
        for (int axis = 0; axis < 3; axis++) {
            double velocities[2];
#pragma unroll 1
            for (int side = 0; side < 2; side++) {
                const int step = 2 * side - 1;
                T u[FIELDS];
                ghosts.load(ghosts.place(0, i + (axis == 0 ? step : 0)), ghosts.place(1, j + (axis == 1 ? step : 0)),
                            ghosts.place(2, k + (axis == 2 ? step : 0)), level.eos, u);
                const double velocity = double(axis == 0 ? u[1] : axis == 1 ? u[2] : u[3]) / double(u[0]);
                (side == 0 ? velocities[0] : velocities[1]) = velocity;
            }
            sum += velocities[1] - velocities[0];
        }
        return sum / (2.0 * level.cell_width);
    }

    INLINE double field(Op op) const {
        switch (op) {
        case Op::Density: return value(DENSITY);
        case Op::Overdensity: return value(DENSITY) / level.mean_gas_density;
        case Op::MatterDensity: return double(density[cell(i, j, k)]);
        case Op::MatterOverdensity: return double(density[cell(i, j, k)]) / level.mean_density;
        case Op::DarkMatterDensity: return double(dark_matter(density, group, cell(i, j, k)));
        case Op::Pressure: return thermal();
        case Op::VelocityX: return velocity(0);
        case Op::VelocityY: return velocity(1);
        case Op::VelocityZ: return velocity(2);
        case Op::Speed: {
            const double x = velocity(0), y = velocity(1), z = velocity(2);
            return square_root(x * x + y * y + z * z);
        }
        case Op::Energy: return value(ENERGY);
        case Op::Entropy: return value(ENTROPY);
        case Op::SoundSpeed: return square_root(double(level.eos.gamma) * thermal() / value(DENSITY));
        case Op::DivergenceOfVelocity: return divergence();
        case Op::Level: return level.level;
        case Op::ScaleFactor: return level.a;
        case Op::PositionX: return centre(0, i);
        case Op::PositionY: return centre(1, j);
        case Op::PositionZ: return centre(2, k);
        case Op::CellWidth: return level.cell_width;
        default: return 0.0;
        }
    }
};

/// The result of a program for one cell. Register r is at registers[r * stride].
template <typename T>
INLINE double evaluate(const Instruction *program, int count, const CellFields<T> &cell, double *registers, int stride) {
    double result = 0.0;
    for (int n = 0; n < count; n++) {
        const Instruction &instruction = program[n];
        const Op op = instruction.op;
        if (op == Op::Constant) {
            result = instruction.constant;
        } else if (op < Op::Constant) {
            result = cell.field(op);
        } else {
            // operands that it does not have are register 0
            result = apply(op, registers[instruction.from[0] * stride], registers[instruction.from[1] * stride],
                           registers[instruction.from[2] * stride]);
        }
        registers[instruction.to * stride] = result;
    }
    return result;
}
