// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/rdma_proof.hpp"

#include <algorithm>
#include <array>

#include "guest-tools/verify/digest.hpp"
#include "guest-tools/verify/payload.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t message_bytes = 64 * 1024;
constexpr std::uint64_t outstanding_max = 16;

enum class Direction { write, read };

struct Stream {
    Direction direction = Direction::write;
    Sge local;  // as long as the remote MR
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

// Transfers every byte of the MR once; the last write notifies the host that the MR is complete.
// Returns seconds.
Result<double> transfer(Bench& bench, Stream const& stream) {
    std::array<ibv_wc, outstanding_max> room{};
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    bool const writes = stream.direction == Direction::write;
    auto const start = raw_nanoseconds();
    while (completed < stream.messages()) {
        while (posted < stream.messages() && posted - completed < outstanding_max) {
            bool const last = posted + 1 == stream.messages();
            VFMGR_CHECK(post(bench, stream, posted,
                             writes && last ? std::optional(notify_write_mr) : std::nullopt));
            ++posted;
        }
        VFMGR_TRY(auto const found, await(bench, room, writes ? "an RDMA write" : "an RDMA read"));
        completed += found.size();
    }
    return static_cast<double>(raw_nanoseconds() - start) / 1e9;
}

Result<Measured> write_mr(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const source, RegisteredMemory::make(bench.pd, offer.write.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "written bytes"));
    fill(Payload::from_seed(offer.write_seed, epoch_write), 0, source.bytes());
    VFMGR_TRY(
        auto const seconds,
        transfer(bench, {Direction::write, {source.bytes(), source.local_key()}, offer.write}));
    auto made = measured("rdma_write");
    made.result.bytes_checked = offer.write.length;
    made.result.figures = rate_figures(offer.write.length, seconds);
    return made;
}

Result<Measured> read_mr(Bench& bench) {
    auto const& offer = bench.offer;
    VFMGR_TRY(auto const target, RegisteredMemory::make(bench.pd, offer.read.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "read bytes"));
    poison(target.bytes());
    VFMGR_TRY(auto const seconds,
              transfer(bench, {Direction::read, {target.bytes(), target.local_key()}, offer.read}));
    auto made = measured("rdma_read");
    made.digest = digest_hex(bench.nonce, target.bytes());
    made.result.bytes_checked = offer.read.length;
    made.result.figures = rate_figures(offer.read.length, seconds);
    return made;
}

}  // namespace

Measured rdma_write(Bench& bench) {
    auto made = write_mr(bench);
    return made ? std::move(*made) : measured_failure("rdma_write", made.error());
}

Measured rdma_read(Bench& bench) {
    auto made = read_mr(bench);
    return made ? std::move(*made) : measured_failure("rdma_read", made.error());
}

}  // namespace vfmgr::verify
