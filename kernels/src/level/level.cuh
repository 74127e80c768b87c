// The tables of a level: the twin of tables.rs, laid out as cuda/level.rs passes them.
#pragma once
#include "layout.cuh"

/// What is beyond a face of the domain (face_boundary.rs).
enum FaceKind : int32_t { OUTFLOW = 0, REFLECTING = 1, FIXED = 2 };

struct Face {
    FaceKind kind;
    double state[FIELDS];
};

struct Level {
    const uint32_t *slots;      // [groups]
    const uint32_t *neighbours; // [groups, 27]
    const uint32_t *parents;    // [groups, 27]
    const uint32_t *children;   // [groups, 8]
    const uint32_t *beyond;     // [groups, 8, 6]
    const uint8_t *octants;     // [groups]
    const uint8_t *outside;     // [groups]
    const uint8_t *leaves;      // [groups]
    uint32_t groups;
    Face faces[FACES];
};
