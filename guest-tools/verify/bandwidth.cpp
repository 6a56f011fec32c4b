// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/bandwidth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-tools/verify/digest.hpp"
#include "guest-tools/verify/payload.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t message_bytes = 64 * 1024;
constexpr std::uint64_t outstanding_max = 16;
constexpr std::uint64_t window_nanoseconds = 1'500'000'000;

enum class Direction { write, read };

struct Stream {
    Direction direction = Direction::write;
    Piece local;  // as long as the remote region
    MemoryRegion remote;

    [[nodiscard]] std::uint64_t messages() const {
        return (remote.length + message_bytes - 1) / message_bytes;
    }
};

Result<void> post(Bench& bench, Stream const& stream, std::uint64_t number,
                  std::optional<std::uint32_t> notify) {
    auto const offset = (number % stream.messages()) * message_bytes;
    auto const bytes = std::min(message_bytes, stream.remote.length - offset);
    RemoteTransfer const transfer{{stream.local.bytes.subspan(offset, bytes), stream.local.key},
                                  stream.remote.address + offset,
                                  stream.remote.rkey,
                                  notify};
    if (stream.direction == Direction::read) return bench.pair.read(number, transfer);
    return bench.pair.write(number, transfer);
}

// Every byte of the region once; the last write tells the host that it is complete.
Result<void> transfer_all(Bench& bench, Stream const& stream) {
    std::array<ibv_wc, outstanding_max> room{};
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    bool const writes = stream.direction == Direction::write;
    while (completed < stream.messages()) {
        while (posted < stream.messages() && posted - completed < outstanding_max) {
            bool const last = posted + 1 == stream.messages();
            VFMGR_CHECK(post(bench, stream, posted,
                             writes && last ? std::optional(notify_write_region) : std::nullopt));
            ++posted;
        }
        VFMGR_TRY(auto const found, await(bench, room, writes ? "an RDMA write" : "an RDMA read"));
        completed += found.size();
    }
    return {};
}

// Counts the completions inside the window, which begins when the pipeline is full and one round of
// it has completed. perftest's own windows may differ between processes; this one is one process's.
struct Timed {
    std::uint64_t messages = 0;
    double seconds = 0;
};
Result<Timed> transfer_timed(Bench& bench, Stream const& stream) {
    std::array<ibv_wc, outstanding_max> room{};
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::uint64_t before = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    bool open = true;
    while (open || completed < posted) {
        while (open && posted - completed < outstanding_max)
            VFMGR_CHECK(post(bench, stream, posted++, std::nullopt));
        VFMGR_TRY(auto const found, await(bench, room, "a timed transfer"));
        completed += found.size();
        if (!open) continue;
        auto const now = raw_nanoseconds();
        if (start == 0 && completed >= outstanding_max) {
            start = now;
            before = completed;
        } else if (start != 0 && now - start >= window_nanoseconds) {
            end = now;
            open = false;
            before = completed - before;
        }
    }
    return Timed{before, static_cast<double>(end - start) / 1e9};
}

void add_figures(TestResult& result, Timed const& timed) {
    auto const bytes = static_cast<double>(timed.messages * message_bytes);
    result.figures["bandwidth_mbps"] = bytes * 8 / 1e6 / timed.seconds;               // decimal
    result.figures["bandwidth_mib_per_s"] = bytes / (1024.0 * 1024) / timed.seconds;  // binary
    result.figures["message_bytes"] = static_cast<double>(message_bytes);
    result.figures["messages"] = static_cast<double>(timed.messages);
    result.figures["seconds"] = timed.seconds;
}

// Whole messages, so that the timed transfers have one size.
MemoryRegion timed_part(MemoryRegion const& region, std::uint64_t skipped) {
    auto const length = (region.length - skipped) / message_bytes * message_bytes;
    return {region.address + skipped, region.rkey, length};
}

Error too_small(char const* region) {
    return {Problem::invalid_request,
            fmt::format("the host's {} region is shorter than {} bytes", region,
                        message_bytes + scratch_stamp_bytes),
            "use the same version on VM and host"};
}

Result<TestResult> write_region(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const source, RegisteredMemory::make(bench.domain, offer.write.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "written bytes"));
    fill(Payload::from_seed(offer.write_seed, epoch_write), 0, source.bytes());
    VFMGR_CHECK(
        transfer_all(bench, {Direction::write, {source.bytes(), source.local_key()}, offer.write}));
    auto result = measured("rdma_write").result;
    result.bytes_checked = offer.write.length;
    auto const timed_region = timed_part(offer.scratch, scratch_stamp_bytes);
    VFMGR_TRY(auto const timed,
              transfer_timed(
                  bench, {Direction::write, {source.bytes(), source.local_key()}, timed_region}));
    add_figures(result, timed);
    return result;
}

Result<Measured> read_region(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const target, RegisteredMemory::make(bench.domain, offer.read.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "read bytes"));
    poison(target.bytes());
    Stream const stream{Direction::read, {target.bytes(), target.local_key()}, offer.read};
    VFMGR_CHECK(transfer_all(bench, stream));
    auto made = measured("rdma_read");
    made.digest = digest_hex(bench.nonce, target.bytes());
    made.result.bytes_checked = offer.read.length;
    auto timed_stream = stream;
    timed_stream.remote = timed_part(offer.read, 0);
    VFMGR_TRY(auto const timed, transfer_timed(bench, timed_stream));
    add_figures(made.result, timed);
    return made;
}

}  // namespace

Measured rdma_write(Bench& bench) {
    auto const& offer = bench.offer;
    if (offer.scratch.length < message_bytes + scratch_stamp_bytes ||
        offer.write.length < offer.scratch.length - scratch_stamp_bytes)
        return measured_failure("rdma_write", too_small("scratch or write"));
    auto result = write_region(bench);
    if (!result) return measured_failure("rdma_write", result.error());
    return {std::move(*result)};
}

Measured rdma_read(Bench& bench) {
    if (bench.offer.read.length < message_bytes)
        return measured_failure("rdma_read", too_small("read"));
    auto made = read_region(bench);
    if (!made) return measured_failure("rdma_read", made.error());
    return std::move(*made);
}

}  // namespace vfmgr::verify
