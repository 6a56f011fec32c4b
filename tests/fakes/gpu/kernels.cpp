// SPDX-License-Identifier: Apache-2.0
// The kernels of guest-tools/gpu/make_payload_ptx, implemented by name; tests/gpu/run_ptx shows
// that their PTX does the same.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "tests/fakes/gpu/standin.hpp"

namespace {

using namespace vfmgr::standin;
using Words = std::array<std::uint32_t, 16>;
using Clock = std::chrono::steady_clock;

enum class Kernel { fill = 1, check, read, packets };
constexpr int not_found = 500, illegal_address = 700;  // CUDA_ERROR_…

struct Arguments {
    std::uint64_t memory = 0, chunks = 0, first = 0, epoch = 0, result = 0;
    std::array<std::uint32_t, 8> key{};
};

std::uint32_t rotated(std::uint32_t value, int by) {
    return value << by | value >> (32 - by);
}

void quarter_round(Words& x, std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    x[d] = rotated(x[d] ^ (x[a] += x[b]), 16);
    x[b] = rotated(x[b] ^ (x[c] += x[d]), 12);
    x[d] = rotated(x[d] ^ (x[a] += x[b]), 8);
    x[b] = rotated(x[b] ^ (x[c] += x[d]), 7);
}

Words chunk(Arguments const& of, std::uint64_t number) {
    auto const low = static_cast<std::uint32_t>(of.epoch);
    auto const high = static_cast<std::uint32_t>(of.epoch >> 32U);
    Words start{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    std::ranges::copy(of.key, start.begin() + 4);
    start[12] = static_cast<std::uint32_t>(number);
    start[13] = low;
    start[14] = high;
    auto x = start;
    for (int double_round = 0; double_round < 4; ++double_round) {
        for (std::size_t n = 0; n < 4; ++n) quarter_round(x, n, n + 4, n + 8, n + 12);
        for (std::size_t n = 0; n < 4; ++n)
            quarter_round(x, n, (n + 1) % 4 + 4, (n + 2) % 4 + 8, (n + 3) % 4 + 12);
    }
    for (std::size_t n = 0; n < x.size(); ++n) x[n] += start[n];
    x[0] = static_cast<std::uint32_t>(number * 64);
    x[1] = static_cast<std::uint32_t>(number * 64 >> 32U);
    x[2] = low;
    x[3] = high;
    return x;
}

void fill(Arguments const& of) {
    auto* at = reinterpret_cast<unsigned char*>(of.memory);
    for (std::uint64_t n = 0; n < of.chunks; ++n, at += sizeof(Words)) {
        auto const made = chunk(of, of.first + n);
        std::memcpy(at, made.data(), sizeof made);
    }
    if (state().personality == "stuck-bit" && of.chunks > 42) at[-64 * 22 + 20] ^= 8;
}

void check(Arguments const& of) {
    auto const* at = reinterpret_cast<unsigned char const*>(of.memory);
    auto* const found = reinterpret_cast<std::uint64_t*>(of.result);
    for (std::uint64_t n = 0; n < of.chunks; ++n, at += sizeof(Words)) {
        auto const made = chunk(of, of.first + n);
        auto const* const expected = reinterpret_cast<unsigned char const*>(made.data());
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < sizeof made; ++i) wrong += at[i] != expected[i] ? 1 : 0;
        if (wrong == 0) continue;
        found[0] += 1;
        found[1] += wrong;
        found[2] = std::min(found[2], of.first + n);
        if (auto const slot = found[3]++; slot < 16) found[4 + slot] = of.first + n;
    }
}

// As in the real kernel: counts a sum of zero.
int read(std::uint64_t memory, std::uint64_t chunks, std::uint64_t result) {
    if (!region_of(memory, chunks * sizeof(Words)) || !region_of(result, sizeof result))
        return illegal_address;
    auto const* const words = reinterpret_cast<std::uint32_t const*>(memory);
    std::uint32_t sum = 0;
    for (std::uint64_t n = 0; n < chunks * 16; ++n) sum += words[n];
    if (sum == 0) *reinterpret_cast<std::uint64_t*>(result) += 1;
    return success;
}

struct PacketArguments {
    std::uint64_t memory = 0, stride = 0, arrived = 0, count = 0, run = 0, numbers = 0;
};

struct Arrived {
    std::uint32_t slot = 0, bytes = 0;
};

std::uint64_t word(unsigned char const* at) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

// Returns the packet's number and removes its first check, or returns all ones.
std::uint64_t looked_at(PacketArguments const& of, Arrived one) {
    constexpr std::uint64_t none = ~std::uint64_t{0};
    auto* const packet = reinterpret_cast<unsigned char*>(of.memory + one.slot * of.stride);
    if (one.bytes < 32) return none;
    if (++state().packets == 10 && state().personality == "damaged") packet[one.bytes - 1] ^= 4;
    auto const number = word(packet + 8);
    auto const check = mixed(of.run ^ (number * 0x9e3779b97f4a7c15U) ^ one.bytes);
    if (word(packet) != of.run || number >= std::uint64_t{1} << 47U || word(packet + 16) != check ||
        word(packet + one.bytes - 8) != check)
        return none;
    auto const taken = ~check;
    std::memcpy(packet + 16, &taken, sizeof taken);
    return number;
}

int packets(PacketArguments const& of) {
    auto const* const ring = region_of(of.memory, 1);
    if (!ring || !region_of(of.arrived, of.count * sizeof(Arrived)) ||
        !region_of(of.numbers, of.count * sizeof(std::uint64_t)))
        return illegal_address;
    bool const seen = state().personality != "unordered" || state().flushed ||
                      state().copied.contains(begin_of(ring));
    state().flushed = false;
    state().copied.clear();
    auto const* const arrived = reinterpret_cast<Arrived const*>(of.arrived);
    auto* const numbers = reinterpret_cast<std::uint64_t*>(of.numbers);
    for (std::uint64_t n = 0; n < of.count; ++n) {
        if (!region_of(of.memory + arrived[n].slot * of.stride, arrived[n].bytes))
            return illegal_address;
        numbers[n] = seen ? looked_at(of, arrived[n]) : ~std::uint64_t{0};
    }
    return success;
}

template <class T>
T argument(void** from, std::size_t at) {
    T value{};
    std::memcpy(&value, from[at], sizeof value);
    return value;
}

}  // namespace

extern "C" {

int cuModuleLoadDataEx(void** module, void const* image, unsigned options, int* names,
                       void** values) {
    std::string_view const text(static_cast<char const*>(image));
    bool const ours = text.find(".version ") != text.npos &&
                      text.find(".entry vfmgr_fill(") != text.npos &&
                      text.find(".entry vfmgr_check(") != text.npos &&
                      text.find(".entry vfmgr_read(") != text.npos &&
                      text.find(".entry vfmgr_packets(") != text.npos;
    if (state().personality != "no-ptx" && ours) {
        *module = &state();
        return success;
    }
    for (unsigned i = 0; i < options; ++i)
        if (names[i] == 5)
            std::strcpy(static_cast<char*>(values[i]), "ptxas fatal: Unsupported .version 6.4");
    return invalid_ptx;
}

int cuModuleUnload(void*) {
    return success;
}

int cuModuleGetFunction(void** function, void*, char const* name) {
    auto const kernel = std::string_view(name) == "vfmgr_fill"      ? Kernel::fill
                        : std::string_view(name) == "vfmgr_check"   ? Kernel::check
                        : std::string_view(name) == "vfmgr_read"    ? Kernel::read
                        : std::string_view(name) == "vfmgr_packets" ? Kernel::packets
                                                                    : Kernel{};
    *function = reinterpret_cast<void*>(static_cast<std::uintptr_t>(kernel));
    return *function ? success : not_found;
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned, void*, void** with, void**) {
    if (blocks == 0 || threads == 0 || threads > 1024) return invalid_value;
    auto const kernel = static_cast<Kernel>(reinterpret_cast<std::uintptr_t>(function));
    if (kernel == Kernel::packets) {
        PacketArguments all;
        std::array<std::uint64_t*, 6> const to{&all.memory, &all.stride, &all.arrived,
                                               &all.count,  &all.run,    &all.numbers};
        for (std::size_t n = 0; n < to.size(); ++n) *to[n] = argument<std::uint64_t>(with, n);
        return std::uint64_t{blocks} * threads < all.count ? invalid_value : packets(all);
    }
    if (kernel == Kernel::read)
        return read(argument<std::uint64_t>(with, 0), argument<std::uint64_t>(with, 1),
                    argument<std::uint64_t>(with, 2));
    Arguments of;
    of.memory = argument<std::uint64_t>(with, 0);
    of.chunks = argument<std::uint64_t>(with, 1);
    of.first = argument<std::uint64_t>(with, 2);
    of.epoch = argument<std::uint64_t>(with, 3);
    std::size_t next = 4;
    if (kernel == Kernel::check) of.result = argument<std::uint64_t>(with, next++);
    of.key = argument<std::array<std::uint32_t, 8>>(with, next);
    if (!region_of(of.memory, of.chunks * sizeof(Words))) return illegal_address;
    if (kernel == Kernel::fill)
        fill(of);
    else
        check(of);
    return success;
}

int cuEventCreate(void** event, unsigned) {
    *event = std::make_unique<Clock::time_point>().release();
    return success;
}

int cuEventDestroy_v2(void* event) {
    std::unique_ptr<Clock::time_point> const owner(static_cast<Clock::time_point*>(event));
    return owner ? success : invalid_value;
}

int cuEventRecord(void* event, void*) {
    *static_cast<Clock::time_point*>(event) = Clock::now();
    return success;
}

int cuEventSynchronize(void*) {
    return success;
}

int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
    std::chrono::duration<float, std::milli> const took =
        *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(begin);
    *milliseconds = took.count();
    return success;
}

}  // extern "C"
