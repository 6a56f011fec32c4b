// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU, for tests: its "GPU memory" is the host's, its kernels are known by
// name and done by the calling thread, its answers are those that an H200's driver gave (580, and
// cuda.h where nothing was recorded). VFMGR_STANDIN_GPU, read by cuInit, makes it another:
//   h200 (the default), geforce, peermem (116 is 1, 124 is 0), none (no device), refused (exports
//   are, whatever the attributes say), leaky (each export leaves a descriptor open), stuck-bit
//   (what a kernel writes comes with one bit wrong), no-ptx (its compiler takes no such PTX),
//   damaged (of the packets that it looks at, the tenth has come with a bit wrong), unordered (118
//   is 0: of packets that a NIC wrote it sees none before a flush), no-flush (117 is 0), two
//   (H200s), geforce-two.
// The library in the folder older/ is that of a driver before CUDA 11: what is newer is not in it.
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

// Pages of a memfd, which a udmabuf can be made of. Its name tells of which GPU: gpu_of().
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
    std::shared_ptr<Physical> physical;  // of a reserved one: once it is mapped
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
    std::map<std::uintptr_t, Region> regions;                         // by their begin
    std::map<unsigned long long, std::shared_ptr<Physical>> handles;  // of cuMemCreate
    unsigned long long next_handle = 1;
    std::uint64_t packets = 0;  // looked at since cuInit
    // Since the kernel of packets ran: regions that were copied to, by their begin, and a flush.
    std::set<std::uintptr_t> copied;
    bool flushed = false;
};
State& state();

// What a library above puts into a stream, and is done while somebody asks whether it is: at the
// last of so many questions. Both libraries know it by this header.
struct Stream {
    int gpu = 0;
    void (*work)(void*) = nullptr;
    void* of = nullptr;
    int questions = 0;
    bool stuck = false;  // for ever
};

// The region that has all of these bytes, mapped; or null.
Region const* region_of(std::uintptr_t address, std::size_t bytes);
std::uintptr_t begin_of(Region const* region);

// The old library knows no attribute above this.
extern int const newest_attribute;

}  // namespace vfmgr::standin
