// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU, for tests: its "GPU memory" is the host's, its kernels are found by
// name and run by the calling thread, its answers are those of an H200's driver (580, and cuda.h
// where nothing was recorded). VFMGR_STANDIN_GPU, read by cuInit, selects its behaviour:
//   h200 (the default), geforce, peermem (116 is 1, 124 is 0), none (no device), refused (exports
//   are, whatever the attributes are), leaky (each export leaves a descriptor open), stuck-bit (a
//   kernel's writes have one wrong bit), no-ptx (its compiler takes no such PTX), damaged (the
//   tenth packet that it checks has one wrong bit), unordered (118 is 0: a NIC's packets are
//   invisible to it before a flush), no-flush (117 is 0), two (H200s), geforce-two.
// The library in the folder older/ is that of a driver before CUDA 11: it lacks newer functions.
// Owned by the process; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace vfmgr::standin {

inline constexpr int success = 0, invalid_value = 1, out_of_memory = 2, no_device = 100,
                     invalid_device = 101, invalid_context = 201, invalid_ptx = 218,
                     not_ready = 600, not_supported = 801;

inline constexpr int gpus_max = 2;
inline constexpr int no_gpu = -1;

// Pages of a memfd, which a udmabuf can be made of. Its name has the GPU's number: gpu_of().
struct Physical {
    Physical(std::size_t size, int of_gpu);
    Physical(Physical const&) = delete;
    Physical& operator=(Physical const&) = delete;
    ~Physical();
    int descriptor = -1;
    std::size_t bytes = 0;
    int gpu = 0;
};

enum class Kind { plain, managed, reserved };

struct Region {
    Kind kind = Kind::plain;
    std::size_t bytes = 0;
    std::shared_ptr<Physical> physical;  // for a reserved one: once it is mapped
    bool accessible = true;
};

struct Context {
    int gpu = 0;
    int retained = 0;
    unsigned flags = 8;  // CU_CTX_MAP_HOST
    std::size_t used = 0;
};

struct State {
    std::string personality;
    bool started = false;
    std::array<Context, gpus_max> contexts{{{.gpu = 0}, {.gpu = 1}}};
    Context* current = nullptr;
    std::map<std::uintptr_t, Region> regions;                         // by their start address
    std::map<unsigned long long, std::shared_ptr<Physical>> handles;  // from cuMemCreate
    unsigned long long next_handle = 1;
    std::uint64_t packets = 0;  // checked since cuInit
    // Since the last run of the packets' kernel: regions that were copied to, by their start
    // address, and a flush.
    std::set<std::uintptr_t> copied;
    bool flushed = false;
};
State& state();

// Work that a library above puts into a stream. It runs in the last of a set number of queries.
// Both libraries know it by this header.
struct Stream {
    int gpu = 0;
    void (*work)(void*) = nullptr;
    void* of = nullptr;
    int questions = 0;
    bool stuck = false;  // forever
};

// The mapped region that contains all of these bytes, or null.
Region const* region_of(std::uintptr_t address, std::size_t bytes);
std::uintptr_t begin_of(Region const* region);

// The highest attribute that the library knows; the old one knows fewer.
extern int const newest_attribute;

}  // namespace vfmgr::standin
