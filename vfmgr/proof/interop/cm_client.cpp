// SPDX-License-Identifier: Apache-2.0
// rping's client: sets up a connection by RDMA CM, and sends pings over it that the server reads
// and writes back. Blocking; only in a process of its own: child.hpp.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "api/os/descriptor.hpp"
#include "api/os/random.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/interop/child.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/proof/interop/share.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/random_payload.hpp"
#include "vfmgr/rdma/faults.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
using verify::QueuePair;
using verify::RegisteredMemory;
// The kernel retransmits a lost connection request after 4.3 seconds.
constexpr std::chrono::seconds event_time{10};
constexpr int resolve_milliseconds = 2000;
constexpr std::uint64_t go_ahead_id = 1, message_id = 2;

// Memory is filled in whole chunks.
std::size_t whole_chunks(std::uint32_t bytes) {
    constexpr auto chunk = verify::payload_chunk_bytes;
    return (bytes + chunk - 1) / chunk * chunk;
}

// Errors name librdmacm's call or the event, and what it means: "rdma_connect ended with
// RDMA_CM_EVENT_REJECTED, status 8".
class CmClient {
  public:
    static Result<CmClient> open(verify::CmOptions const& options, Deadline deadline) {
        VFMGR_TRY(auto rdma, open_rdma(options));
        VFMGR_TRY(auto channel, make_cm_channel());
        VFMGR_TRY(auto id, make_cm_id(channel));
        // The host's end takes the traffic class from the connection request.
        auto traffic_class = verify::traffic_class_of(options.own.dscp);
        if (traffic_class != 0 && rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
                                                  &traffic_class, sizeof traffic_class) != 0)
            return fail(cm_error(Problem::unsupported, "RDMA CM can't set the traffic class",
                                 "rdma_set_option"));
        return CmClient(options, deadline, std::move(rdma), std::move(channel), std::move(id));
    }

    Result<void> connect() {
        VFMGR_CHECK(resolve());
        auto parameters = parameters_for(rdma_.pair);
        if (rdma_connect(id_.get(), &parameters) != 0)
            return fail(cm_error(Problem::kernel_refused, "RDMA CM can't connect", "rdma_connect"));
        // The queue pair is not the id's, so librdmacm leaves its state changes to this program.
        VFMGR_CHECK(await_event(RDMA_CM_EVENT_CONNECT_RESPONSE, "rdma_connect"));
        VFMGR_CHECK(make_ready(id_, rdma_.pair));
        if (rdma_establish(id_.get()) == 0) return {};
        return fail(cm_error(Problem::kernel_refused, "RDMA CM can't connect", "rdma_establish"));
    }

    // Pings one at a time; returns each round trip in ns.
    Result<std::vector<std::uint64_t>> ping() {
        auto const seed = random_number();
        auto const chunks = whole_chunks(options_.message_bytes);
        std::vector<std::uint64_t> round_trips;
        for (std::uint64_t number = 0; number < options_.pings; ++number) {
            verify::fill(verify::Payload::from_seed(seed, number), 0,
                         rdma_.ping.bytes().first(chunks));
            verify::poison(rdma_.pong.bytes().first(chunks));
            auto const start = verify::raw_nanoseconds();
            VFMGR_CHECK(offer(rdma_.ping));
            VFMGR_CHECK(offer(rdma_.pong));
            round_trips.push_back(verify::raw_nanoseconds() - start);
            VFMGR_CHECK(compare(number));
        }
        return round_trips;
    }

    void disconnect() {
        rdma_disconnect(id_.get());
        rdma_.pair.shut(Steady::now() + verify::drain_wait);
    }

  private:
    struct Rdma {
        verify::Endpoint endpoint;  // members are destroyed from the last to the first
        RegisteredMemory messages, ping, pong;
        QueuePair pair;
    };
    CmClient(verify::CmOptions options, Deadline deadline, Rdma rdma, CmChannel channel, CmId id)
        : options_(std::move(options)),
          deadline_(deadline),
          rdma_(std::move(rdma)),
          channel_(std::move(channel)),
          id_(std::move(id)) {}

    static Result<Rdma> open_rdma(verify::CmOptions const& options) {
        VFMGR_TRY(auto endpoint, verify::open_endpoint(options.own, port_time));
        auto* const pd = endpoint.pd.get();
        constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE;
        auto const bytes = whole_chunks(options.message_bytes);
        VFMGR_TRY(auto messages,
                  RegisteredMemory::make(pd, 2 * rping_message_bytes, local, "rping's messages"));
        VFMGR_TRY(auto ping, RegisteredMemory::make(pd, bytes, IBV_ACCESS_REMOTE_READ, "the ping"));
        VFMGR_TRY(auto pong,
                  RegisteredMemory::make(pd, bytes, local | IBV_ACCESS_REMOTE_WRITE, "the pong"));
        VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 2, .receives = 2},
                                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
        return Rdma{std::move(endpoint), std::move(messages), std::move(ping), std::move(pong),
                    std::move(pair)};
    }

    Result<void> await_event(rdma_cm_event_type expected, char const* call) {
        auto const until = std::min(deadline_, Steady::now() + event_time);
        rdma_cm_event* event = nullptr;
        while (rdma_get_cm_event(channel_.get(), &event) != 0) {
            if (errno != EAGAIN)
                return fail(cm_error(Problem::kernel_refused, "RDMA CM's events can't be read",
                                     "rdma_get_cm_event"));
            VFMGR_TRY(auto const readiness, await_readable(std::array{channel_->fd}, until));
            if (readiness == Readiness::deadline_passed)
                return fail(
                    Problem::timed_out,
                    fmt::format("{} to {} got no event in time", call, to_string(options_.host)),
                    remedy_of(verify::cm_fault(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT)));
        }
        auto const [got, status] = std::pair(event->event, event->status);
        rdma_ack_cm_event(event);
        if (got == expected) return {};
        return fail(Problem::kernel_refused,
                    fmt::format("{} to {} failed with {}, status {}", call,
                                to_string(options_.host), rdma_event_str(got), status),
                    remedy_of(verify::cm_fault(got, status)));
    }

    // Binds to the VF's address; otherwise the kernel may choose another NIC.
    Result<void> resolve() {
        auto from = SocketAddress::of(options_.own.address, 0);
        auto to = SocketAddress::of(options_.host, options_.cm_port);
        // librdmacm does not write to these addresses.
        if (rdma_resolve_addr(id_.get(), const_cast<sockaddr*>(from.get()),
                              const_cast<sockaddr*>(to.get()), resolve_milliseconds) != 0)
            return fail(
                cm_error(Problem::kernel_refused,
                         fmt::format("RDMA CM finds no path from {} to {}",
                                     to_string(options_.own.address), to_string(options_.host)),
                         "rdma_resolve_addr"));
        VFMGR_CHECK(await_event(RDMA_CM_EVENT_ADDR_RESOLVED, "rdma_resolve_addr"));
        VFMGR_CHECK(check_device());
        if (rdma_resolve_route(id_.get(), resolve_milliseconds) != 0)
            return fail(
                cm_error(Problem::kernel_refused, "RDMA CM finds no route", "rdma_resolve_route"));
        return await_event(RDMA_CM_EVENT_ROUTE_RESOLVED, "rdma_resolve_route");
    }

    // librdmacm finds a device by its node GUID, and several devices may have none; on InfiniBand
    // it takes the port below IPoIB's interface with the address.
    Result<void> check_device() const {
        return check_choice(
            rdma_.endpoint,
            {.device = id_->verbs ? ibv_get_device_name(id_->verbs->device) : "none",
             .gid = id_->route.addr.addr.ibaddr.sgid});
    }

    // Sends the memory's location and waits until the server has done its part there.
    Result<void> offer(RegisteredMemory const& memory) {
        auto mr = memory.remote();
        mr.length = options_.message_bytes;
        std::ranges::copy(make_rping_message(mr), rdma_.messages.bytes().begin());
        VFMGR_CHECK(rdma_.pair.receive(
            go_ahead_id, rdma_.messages.sge(rping_message_bytes, rping_message_bytes)));
        VFMGR_CHECK(rdma_.pair.send(message_id, rdma_.messages.sge(0, rping_message_bytes)));
        return verify::await_all(rdma_.pair.completions(), 2, deadline_, "a ping",
                                 verify::polls_for_latency);
    }

    Result<void> compare(std::uint64_t number) const {
        auto const ping = rdma_.ping.bytes().first(options_.message_bytes);
        auto const pong = rdma_.pong.bytes().first(options_.message_bytes);
        auto const [sent, back] = std::ranges::mismatch(ping, pong);
        if (sent == ping.end()) return {};
        return fail(Problem::kernel_refused,
                    fmt::format("pong {} of {} bytes differs from its ping, first at byte {}",
                                number, ping.size(), sent - ping.begin()),
                    "verify again; if bytes differ again, suspect memory, IOMMU or NIC");
    }

    verify::CmOptions options_;
    Deadline deadline_;
    Rdma rdma_;
    CmChannel channel_;  // outlives its id
    CmId id_;
};

// Fails with conflict when RDMA CM chooses another device than the VF's.
Result<verify::Measured> ping_over_cm(verify::CmOptions const& options, Deadline deadline) {
    VFMGR_TRY(auto client, CmClient::open(options, deadline));
    auto const start = verify::raw_nanoseconds();
    VFMGR_CHECK(client.connect());
    auto const connected = verify::raw_nanoseconds();
    auto round_trips = client.ping();
    client.disconnect();
    if (!round_trips) return fail(round_trips.error());
    auto made = verify::measured("cm_ping");
    made.result.figures = verify::summarise(std::move(*round_trips));
    made.result.figures["connect_us"] = static_cast<double>(connected - start) / 1000;
    made.result.figures["message_bytes"] = options.message_bytes;
    made.result.figures["sent"] = static_cast<double>(options.pings);
    made.result.bytes_checked = options.pings * options.message_bytes;
    made.result.detail =
        "round trip of a ping that the host read and wrote back, connected by RDMA CM";
    return made;
}

constexpr std::size_t cm_sentence_max = 1000;  // each of detail and remedy: both fit one message

struct PingOrder {
    verify::CmOptions options;
    Deadline deadline;
};

std::optional<PingOrder> order_in(std::vector<std::string> const& words) {
    if (words.size() != 10) return std::nullopt;
    auto const own = IpAddress::parse(words[0]);
    auto const dscp = parse_digits(words[2], {10, 1, 2, dscp_max});
    auto const host = IpAddress::parse(words[3]);
    auto const port = parse_digits(words[4], {10, 1, 5, 65535});
    auto const bytes = parse_digits(words[5], {10, 1, 7, cm_bytes_max});
    auto const pings = parse_digits(words[6], {10, 1, 7});
    auto const milliseconds = parse_digits(words[7], {10, 1, 7});
    verify::EndpointOptions options;
    bool const port_read =
        read_word(words[8], options.port_guid) && read_word(words[9], options.pkey);
    if (!own || !dscp || !host || !port || !bytes || *bytes == 0 || !pings || !milliseconds ||
        !port_read)
        return std::nullopt;
    options.address = *own;
    options.ifname = words[1];
    options.dscp = static_cast<std::uint8_t>(*dscp);
    return PingOrder{{std::move(options), *host, static_cast<std::uint16_t>(*port),
                      static_cast<std::uint32_t>(*bytes), *pings},
                     Steady::now() + std::chrono::milliseconds(*milliseconds)};
}

}  // namespace

int ping_by_cm(std::vector<std::string> const& words) {
    auto const order = order_in(words);
    if (!order) return 2;
    // The child gets no other notification when the parent dies.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto pinged = ping_over_cm(order->options, order->deadline);
    auto made = pinged ? std::move(*pinged) : verify::measured_failure("cm_ping", pinged.error());
    auto& result = made.result;
    result.detail = verify::printable(result.detail, cm_sentence_max);
    result.remedy = verify::printable(result.remedy, cm_sentence_max);
    report_to_parent(to_json_text(nlohmann::json(result)));
    return 0;
}

}  // namespace vfmgr::interop
