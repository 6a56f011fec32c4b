// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/host_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/os/random.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/rdma/completion.hpp"

namespace vfmgr::verify {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::uint32_t echoes_outstanding_max = 16;

bool receives(StreamKind kind) {
    return kind == StreamKind::send || kind == StreamKind::send_echo || kind == StreamKind::ud_echo;
}

// The bytes that a message occupies where it arrives.
std::size_t room_of(StreamRequest const& request) {
    return request.message_bytes + (request.kind == StreamKind::ud_echo ? ud_header_bytes : 0);
}

// A datagram is checked before the next may overwrite it.
std::uint32_t receives_of(StreamRequest const& request) {
    if (request.kind == StreamKind::ud_echo) return 1;
    return receives(request.kind) ? request.depth : 0;
}

QueuePairOptions options_of(StreamRequest const& request) {
    return {.transport = request.kind == StreamKind::ud_echo ? Transport::ud : Transport::rc,
            .sends = echoes_outstanding_max,
            .receives = receives_of(request)};
}

// Datagrams may come from any sender: the sender's address is in the header, its queue pair in the
// completion. InfiniBand's without a GRH name no sender but a LID.
bool is_from(QueuePairEnd const& peer, ibv_wc const& datagram, std::span<std::byte const> arrived) {
    auto const gid = parse_gid(peer.gid);
    if (!gid || datagram.src_qp != peer.qp_num || datagram.byte_len < ud_header_bytes) return false;
    if (peer.subnet && (datagram.wc_flags & IBV_WC_GRH) == 0) return false;
    auto const expected = std::as_bytes(std::span(*gid));
    constexpr std::size_t ipv4_source = 32, gid_source = 8;
    constexpr std::array<std::uint8_t, 12> ipv4_mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (std::ranges::equal(std::span(*gid).first(12), ipv4_mapped))
        return std::ranges::equal(arrived.subspan(ipv4_source, 4), expected.last(4));
    return std::ranges::equal(arrived.subspan(gid_source, 16), expected);
}

}  // namespace

void StreamFacts::add(StreamFacts const& other) {
    messages += other.messages;
    bytes_kept += other.bytes_kept;
    read.add(other.read);
    if (error.empty()) error = other.error;
}

StreamEnd::StreamEnd(std::uint32_t seconds) {
    offer_.stream = random_hex(16);
    offer_.seconds = seconds;
}

Result<void> require_rdma(SessionPermit const& permit) {
    if (permit.rdma != RdmaMode::none) return {};
    return fail(Problem::forbidden, "the network has rdma: none",
                "set rdma: auto or rxe on the network");
}

Result<void> require_at_vf(SessionPermit const& permit, QueuePairEnd const& end) {
    constexpr auto remedy = "test over the VF's own RDMA device";
    if (!permit.vf_guid) {
        if (end.gid == gid_hex(permit.peer_address.gid())) return {};
        return fail(Problem::forbidden,
                    fmt::format("the queue pair's GID {} is not {}, the GID of the VF's address {}",
                                end.gid, gid_hex(permit.peer_address.gid()),
                                to_string(permit.peer_address)),
                    remedy);
    }
    VFMGR_TRY(auto const gid, parse_gid(end.gid));
    if (end.subnet && guid_of(gid) == *permit.vf_guid) return {};
    return fail(
        Problem::forbidden,
        fmt::format("the queue pair's GID {} is not that of the VF's port, whose GUID is {}",
                    gid_text(gid), to_string(*permit.vf_guid)),
        remedy);
}

// The guest's end must be at the VF, as the session's end is.
Result<void> check_stream(SessionPermit const& permit, StreamRequest const& request,
                          ResponderLimits const& limits) {
    VFMGR_CHECK(require_rdma(permit));
    for (auto const& pair : request.pairs) VFMGR_CHECK(require_at_vf(permit, pair));
    auto const bytes = std::uint64_t{request.message_bytes} * request.pairs.size();
    if (bytes <= limits.stream_bytes_max) return {};
    return fail(
        Problem::limit_exceeded,
        fmt::format(
            "{} queue pairs of {} bytes each need {} bytes, more than the {} that the host allows",
            request.pairs.size(), request.message_bytes, bytes, limits.stream_bytes_max),
        "use smaller messages (--size) or fewer queue pairs (--queue-pairs)");
}

Result<Endpoint> open_host_endpoint(SessionPermit const& permit, std::chrono::milliseconds wait) {
    EndpointOptions options{permit.host_address, permit.host_netdev, permit.dscp.value_or(0)};
    if (!permit.vf_guid) return open_endpoint(options, wait);
    if (!permit.host_guid)
        return fail(Problem::unavailable,
                    fmt::format("the GUID of {}'s InfiniBand port is unknown", permit.host_netdev),
                    "load ib_ipoib on the host: the port's GUID is read from its IPoIB interface");
    options.port_guid = permit.host_guid;
    if (permit.pkey) options.pkey = table_entry({permit.pkey->key, PkeyMembership::full});
    // The guest names its LID. With GIDs in each packet, only the VF's port can answer.
    options.grh = Grh::always;
    return open_endpoint(options, wait);
}

HostStream::HostStream(Rdma rdma, StreamRequest request, ResponderLimits const& limits)
    : StreamEnd(limits.stream_seconds_max),
      request_(std::move(request)),
      deadline_(Steady::now() + std::chrono::seconds(limits.stream_seconds_max)),
      rdma_(std::move(rdma)) {
    offer_.memory = rdma_.memory.remote();
}

HostStream::~HostStream() {
    stop();
}

StreamFacts HostStream::stop() {
    if (!stopping_.exchange(true)) {
        // Breaking off completes pending waits; a thread that polls memory checks stopping_.
        if (receives(request_.kind))
            for (auto& pair : rdma_.all.pairs) pair.break_off();
        if (thread_.joinable()) thread_.join();
        rdma_.all.shut();
    }
    return {.messages = messages_};
}

Result<std::unique_ptr<HostStream>> HostStream::open(SessionPermit const& permit,
                                                     StreamRequest const& request,
                                                     ResponderLimits const& limits) {
    VFMGR_CHECK(check_stream(permit, request, limits));
    NearNic const near(permit.host_netdev);  // the stream's thread inherits it
    VFMGR_TRY(auto rdma, open_rdma(permit, request));
    std::unique_ptr<HostStream> stream(new HostStream(std::move(rdma), request, limits));
    VFMGR_CHECK(stream->connect());
    if (request.kind != StreamKind::one_sided)
        stream->thread_ = std::thread([raw = stream.get()] { raw->run(); });
    return stream;
}

Result<HostStream::Rdma> HostStream::open_rdma(SessionPermit const& permit,
                                               StreamRequest const& request) {
    VFMGR_TRY(auto endpoint, open_host_endpoint(permit));
    if (request.kind == StreamKind::ud_echo && request.message_bytes > endpoint.path_mtu)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} bytes do not fit into a datagram on the host, which holds {}",
                                request.message_bytes, endpoint.path_mtu),
                    "use datagrams no longer than the path MTU: --size");
    auto* const pd = endpoint.pd.get();
    auto const bytes = room_of(request) * request.pairs.size();
    unsigned remote = 0;
    if (!receives(request.kind)) remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    auto const access = IBV_ACCESS_LOCAL_WRITE | remote | write_order(request.kind);
    VFMGR_TRY(auto memory, RegisteredMemory::make(pd, bytes, access, "stream's memory"));
    VFMGR_TRY(auto answer, RegisteredMemory::make(pd, request.message_bytes, IBV_ACCESS_LOCAL_WRITE,
                                                  "stream's answers"));
    VFMGR_TRY(auto pairs,
              QueuePairs::make(endpoint, options_of(request), remote, request.pairs.size()));
    return Rdma{std::move(endpoint), std::move(memory), std::move(answer), std::move(pairs)};
}

// Posts the receives before the guest can send.
Result<void> HostStream::connect() {
    for (std::size_t i = 0; i < rdma_.all.pairs.size(); ++i) {
        auto& pair = rdma_.all.pairs[i];
        for (std::uint32_t n = 0; n < receives_of(request_); ++n) VFMGR_CHECK(receive(i));
        VFMGR_CHECK(pair.connect(rdma_.endpoint, request_.pairs[i]));
        offer_.pairs.push_back(pair.end());
    }
    return {};
}

std::span<std::byte> HostStream::message(std::size_t pair) const {
    auto const room = room_of(request_);
    return rdma_.memory.bytes().subspan(pair * room, room);
}

// All receives of a pair share one buffer: arrivals are counted, not read.
Result<void> HostStream::receive(std::size_t pair) {
    return rdma_.all.pairs[pair].receive(pair, {message(pair), rdma_.memory.local_key()});
}

Result<void> HostStream::take_sends() {
    std::array<ibv_wc, 64> room{};
    auto polls = polls_by_default;
    if (request_.kind == StreamKind::send_echo)
        polls = rdma_.endpoint.software ? polls_of_a_software_echo : polls_for_latency;
    while (!stopping_) {
        VFMGR_TRY(auto const found, rdma_.all.queue->wait(room, deadline_, polls));
        VFMGR_CHECK(check_completions(found, "a receive of the stream"));
        for (auto const& completion : found) {
            if (completion.opcode != IBV_WC_RECV) continue;
            auto const pair = static_cast<std::size_t>(completion.wr_id);
            VFMGR_TRY(bool const ours, answer_send(pair, completion));
            VFMGR_CHECK(receive(pair));
            if (ours) ++messages_;
        }
    }
    return {};
}

// Returns whether the message is from the guest.
Result<bool> HostStream::answer_send(std::size_t pair, ibv_wc const& arrived) {
    if (request_.kind == StreamKind::send) return true;
    std::size_t bytes = arrived.byte_len;
    auto const answer = rdma_.answer.bytes();
    if (request_.kind == StreamKind::ud_echo) {
        if (!is_from(request_.pairs[pair], arrived, message(pair))) return false;
        bytes -= ud_header_bytes;
        std::ranges::copy(message(pair).subspan(ud_header_bytes, ud_bytes_min), answer.begin());
    }
    VFMGR_CHECK(rdma_.all.pairs[pair].send(pair, rdma_.answer.sge(0, bytes)));
    return true;
}

// The guest's message ends with a number that counts up, and so does the answer. This follows
// perftest's write latency (RDMA.md#latency), where the host's number is one ahead if it leads.
Result<void> HostStream::answer_writes() {
    auto const number_at = request_.message_bytes - 1;
    auto const arrived = message(0);
    std::uint8_t expected = 1;
    std::uint8_t ahead = 0;
    Spin spin;
    while (!stopping_) {
        if (leads_.exchange(false)) {
            VFMGR_CHECK(write_number(expected));
            ahead = 1;
        }
        if (read_byte(arrived[number_at]) != expected) {
            if (!spin.again(deadline_)) break;
            continue;
        }
        spin.found();
        VFMGR_CHECK(write_number(static_cast<std::uint8_t>(expected + ahead)));
        ++expected;
        ++messages_;
    }
    return {};
}

Result<void> HostStream::write_number(std::uint8_t number) {
    auto const answer = rdma_.answer.sge(0, request_.message_bytes);
    answer.bytes.back() = std::byte{number};
    VFMGR_CHECK(rdma_.all.pairs.front().transfer(
        0, TransferDirection::write, {answer, request_.back->address, request_.back->rkey}));
    // The guest's next message needs this answer: by then the previous one has completed.
    std::array<ibv_wc, echoes_outstanding_max> room{};
    VFMGR_TRY(auto const done, rdma_.all.queue->poll(room));
    return check_completions(done, "an answer of the stream");
}

// The guest notices how the stream ends, because its measurement ends too.
void HostStream::run() {
    static_cast<void>(request_.kind == StreamKind::write_echo ? answer_writes() : take_sends());
}

}  // namespace vfmgr::verify
