// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU, for tests: its "GPU memory" is the host's, its kernels are known by
// name and done by the calling thread, its answers are those that an H200's driver gave (580, and
// cuda.h where nothing was recorded). VFMGR_STANDIN_GPU, read by cuInit, makes it another:
//   h200 (the default), geforce, peermem (116 is 1, 124 is 0), none (no device), refused (exports
//   are, whatever the attributes say), leaky (each export leaves a descriptor open), stuck-bit
//   (what a kernel writes comes with one bit wrong), no-ptx (its compiler takes no such PTX).
// The library in the folder older/ is that of a driver before CUDA 11: what is newer is not in it.
// Owned by the process; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace vfmgr::standin {

inline constexpr int success = 0, invalid_value = 1, out_of_memory = 2, no_device = 100,
                     invalid_device = 101, invalid_ptx = 218, not_supported = 801;

// Pages of a memfd, which a udmabuf can be made of.
struct Physical {
    explicit Physical(std::size_t size);
    Physical(Physical const&) = delete;
    Physical& operator=(Physical const&) = delete;
    ~Physical();
    int descriptor = -1;
    std::size_t bytes = 0;
};

enum class Kind { plain, managed, reserved };

struct Region {
    Kind kind = Kind::plain;
    std::size_t bytes = 0;
    std::shared_ptr<Physical> physical;  // of a reserved one: once it is mapped
    bool accessible = true;
};

struct State {
    std::string personality;
    bool started = false;
    unsigned context_flags = 8;  // CU_CTX_MAP_HOST
    int retained = 0;
    bool current = false;
    std::size_t used = 0;
    std::map<std::uintptr_t, Region> regions;                         // by their begin
    std::map<unsigned long long, std::shared_ptr<Physical>> handles;  // of cuMemCreate
    unsigned long long next_handle = 1;
};
State& state();

// The region that has all of these bytes, mapped; or null.
Region const* region_of(std::uintptr_t address, std::size_t bytes);
std::uintptr_t begin_of(Region const* region);

// The old library knows no attribute above this.
extern int const newest_attribute;

}  // namespace vfmgr::standin
