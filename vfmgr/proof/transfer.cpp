// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vfmgr::verify {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::uint64_t id_order = 1, id_answer = 2, id_arrived = 3;
constexpr std::size_t reason_bytes_max = 250;    // gpudirect's detail may hold three of them
constexpr std::uint64_t memory_bytes = 4 << 20;  // of main memory
constexpr std::array<std::uint64_t, 6> sizes{64, 4096, 65536, 1 << 20, 4 << 20, 8 << 20};
constexpr std::uint64_t always_bytes_max = 1 << 20;  // larger sizes only while there is time
constexpr auto over_dc = "over DC";
constexpr auto remedy = "verify again; if bytes differ again, suspect memory, IOMMU or NIC";

class MainMemory final : public TransferTarget {
  public:
    explicit MainMemory(RegisteredMemory memory) : memory_(std::move(memory)) {}
    MemoryRegion mr() const override { return memory_.remote(); }
    Result<void> poison(std::uint64_t bytes) override {
        verify::poison(memory_.bytes().first(bytes));
        return {};
    }
    Result<void> fill(Payload const& payload, std::uint64_t bytes) override {
        verify::fill(payload, 0, memory_.bytes().first(bytes));
        return {};
    }
    Result<PayloadCheck> check(Payload const& payload, std::uint64_t bytes) override {
        return verify::check(payload, 0, memory_.bytes().first(bytes));
    }
    Result<bool> flush() override { return false; }  // a CPU reads it once the completion is there

  private:
    RegisteredMemory memory_;
};

Error differs(std::string_view what, std::uint64_t mismatches, std::uint64_t bytes,
              std::string_view detail) {
    return {Problem::internal,
            fmt::format("{}: {} of {} bytes differ: {}", what, mismatches, bytes, detail), remedy};
}

class Rounds {
  public:
    Rounds(TransferStream& stream, TransferTarget& target, Deadline deadline)
        : stream_(stream), target_(target), deadline_(deadline) {}

    Result<void> round(std::uint64_t bytes) {
        VFMGR_CHECK(host_writes(bytes));
        VFMGR_CHECK(host_reads(bytes));
        VFMGR_CHECK(host_keeps(bytes));
        ++rounds_;
        return {};
    }
    std::map<std::string, double> figures() const {
        constexpr double mib = 1024.0 * 1024, giga = 1e9;
        auto const rate = [](std::uint64_t bytes, std::uint64_t nanoseconds) {
            return static_cast<double>(bytes) / mib * giga / static_cast<double>(nanoseconds);
        };
        auto const chunks = written_ / payload_chunk_bytes;
        return {
            {"rounds", static_cast<double>(rounds_)},
            {"orders", static_cast<double>(orders_)},
            {"bytes", static_cast<double>(written_ + read_)},
            {"stale_per_million", static_cast<double>(stale_) * 1e6 / static_cast<double>(chunks)},
            {"write_mib_per_s", rate(written_, writing_)},
            {"read_mib_per_s", rate(read_, reading_)}};
    }
    std::uint64_t checked() const { return written_ + read_; }

  private:
    // Returns nanoseconds, copies included.
    Result<std::uint64_t> order(TransferOrder const& what) {
        bool const writes = what.direction == TransferDirection::write;
        auto const start = raw_nanoseconds();
        if (!writes) VFMGR_CHECK(target_.leaving(what.bytes));
        VFMGR_TRY(auto const answer, stream_.order(what, deadline_));
        if (writes) VFMGR_CHECK(target_.arrived(what.bytes));
        ++orders_;
        auto const taken = raw_nanoseconds() - start;
        if (answer.mismatches != 0)
            return fail(
                differs("the host read this memory", answer.mismatches, what.bytes, answer.detail));
        return taken;
    }
    Result<void> host_writes(std::uint64_t bytes) {
        VFMGR_CHECK(target_.poison(bytes));
        ++epoch_;
        VFMGR_TRY(auto const taken,
                  order({TransferDirection::write, PayloadOf::seed, epoch_, 0, bytes}));
        written_ += bytes;
        writing_ += taken;
        VFMGR_TRY(auto const at_once, target_.check(stream_.payload(epoch_), bytes));
        if (at_once.mismatches == 0) return {};
        VFMGR_TRY(bool const flushed, target_.flush());
        VFMGR_TRY(auto const again, target_.check(stream_.payload(epoch_), bytes));
        if (again.mismatches != 0)
            return fail(differs(flushed ? "the host wrote to this memory, and it was flushed"
                                        : "the host wrote to this memory",
                                again.mismatches, bytes, again.detail));
        stale_ += (at_once.mismatches + payload_chunk_bytes - 1) / payload_chunk_bytes;
        return {};
    }
    Result<void> host_reads(std::uint64_t bytes) {
        ++epoch_;
        VFMGR_CHECK(target_.fill(stream_.payload(epoch_), bytes));
        VFMGR_TRY(auto const taken,
                  order({TransferDirection::read, PayloadOf::seed, epoch_, 0, bytes}));
        read_ += bytes;
        reading_ += taken;
        return {};
    }
    Result<void> host_keeps(std::uint64_t bytes) {
        ++epoch_;
        VFMGR_CHECK(order({TransferDirection::write, PayloadOf::host, epoch_, 0, bytes}));
        VFMGR_CHECK(order({TransferDirection::read, PayloadOf::host, epoch_, 0, bytes}));
        return {};
    }

    TransferStream& stream_;
    TransferTarget& target_;
    Deadline deadline_;
    std::uint64_t epoch_ = 0, rounds_ = 0, orders_ = 0, stale_ = 0;
    std::uint64_t written_ = 0, writing_ = 0, read_ = 0, reading_ = 0;
};

Result<Measured> run(TransferStream& stream, TransferTarget& target,
                     std::chrono::milliseconds window, Deadline deadline) {
    Rounds rounds(stream, target, deadline);
    auto const until = Steady::now() + window;
    auto const most = std::min(stream.message_bytes(), target.mr().length);
    do {
        for (auto const bytes : sizes) {
            bool const in_time = bytes <= always_bytes_max || Steady::now() < until;
            if (bytes <= most && in_time) VFMGR_CHECK(rounds.round(bytes));
        }
    } while (Steady::now() < until);
    auto made = measured();
    made.result.figures = rounds.figures();
    made.result.bytes_checked = rounds.checked();
    made.result.detail = stream.over();
    return made;
}

}  // namespace

Result<TransferStream> TransferStream::open(StreamHost const& host, Endpoint const& endpoint,
                                            StreamKind kind, MemoryRegion const& target,
                                            Result<Mlx5> const& mlx5) {
    constexpr unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    VFMGR_TRY(auto mail, make_transfer_mail(endpoint.pd.get()));
    VFMGR_TRY(auto all, QueuePairs::make(endpoint, {.sends = 2, .receives = 2}, remote, 1));
    auto const message = std::min<std::uint64_t>(
        target.length / payload_chunk_bytes * payload_chunk_bytes, stream_message_bytes_max);
    StreamRequest request{kind, static_cast<std::uint32_t>(message), 1, {}, target, {}};
    request.pairs.push_back(all.pairs.front().end());
    TransferStream stream(host, std::move(mail), std::move(all));
    stream.message_bytes_ = message;
    if (auto made = DcTarget::make(mlx5, endpoint, stream.all_.queue)) {
        request.dct = made->end();
        stream.target_ = std::move(*made);
    } else {
        stream.over_ = "over RC: " + printable(reason_of(made.error()), reason_bytes_max);
    }
    VFMGR_CHECK(stream.ask(std::move(request)));
    VFMGR_CHECK(stream.all_.pairs.front().connect(endpoint, stream.offer_.pairs.front()));
    return stream;
}

// A host that does not know DC refuses the whole request; the guest then repeats it without DC.
Result<void> TransferStream::ask(StreamRequest request) {
    auto offered = host_.open(request);
    if (!offered && request.dct && offered.error().problem == Problem::invalid_request) {
        over_ = "over RC: the host's version has no DC";
        request.dct.reset();
        offered = host_.open(request);
    }
    if (!offered) return fail(std::move(offered).error());
    offer_ = std::move(*offered);
    if (offer_.pairs.size() != 1 || !offer_.seed ||
        request.dct.has_value() != offer_.transport.has_value())
        return fail(Problem::invalid_request, "the host's stream is not what the guest requested",
                    "use the same version on VM and host");
    if (offer_.transport == TransferTransport::dc) {
        over_ = over_dc;
        return {};
    }
    target_.reset();
    if (offer_.transport)
        over_ = "over RC: on the host, " +
                printable(offer_.transport_reason.value_or("no reason given"), reason_bytes_max);
    return {};
}

TransferStream::~TransferStream() {
    if (all_.pairs.empty()) return;  // moved from
    all_.shut();
    if (!offer_.stream.empty()) host_.close(offer_.stream);
}

Result<TransferAnswer> TransferStream::order(TransferOrder const& order, Deadline deadline) {
    auto& pair = all_.pairs.front();
    std::ranges::copy(encode(order), order_in(mail_).bytes.begin());
    unsigned awaited = 2;  // the order's completion, and the answer
    if (target_ && order.direction == TransferDirection::write) {
        VFMGR_CHECK(target_->receive(id_arrived));
        ++awaited;
    }
    VFMGR_CHECK(pair.receive(id_answer, answer_in(mail_)));
    VFMGR_CHECK(pair.send(id_order, order_in(mail_)));
    VFMGR_CHECK(await_all(*all_.queue, awaited, deadline, "an order to the host"));
    return parse_answer(answer_in(mail_).bytes);
}

Measured run_transfers(TransferStream& stream, TransferTarget& target,
                       std::chrono::milliseconds window, Deadline deadline) {
    auto made = run(stream, target, window, deadline);
    if (made) return std::move(*made);
    auto failure = measured_failure({}, made.error());
    if (stream.over() == over_dc) failure.result.detail += std::string(", ") + over_dc;
    return failure;
}

Result<Measured> transfer(StreamHost const& host, Endpoint const& endpoint, Load const& load,
                          Deadline deadline, Result<Mlx5> const& mlx5) {
    VFMGR_TRY(auto memory, RegisteredMemory::make(endpoint.pd.get(), memory_bytes, transfer_access,
                                                  "main memory"));
    MainMemory target(std::move(memory));
    VFMGR_TRY(auto stream,
              TransferStream::open(host, endpoint, StreamKind::transfer, target.mr(), mlx5));
    return run_transfers(stream, target, load.window, deadline);
}

}  // namespace vfmgr::verify
