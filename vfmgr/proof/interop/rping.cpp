// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/rping.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <optional>

#include "api/types/guest.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/interop/cm_server.hpp"
#include "vfmgr/proof/interop/lines.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
using verify::QueuePair;
constexpr std::uint64_t ping_bytes_max = cm_bytes_max;
constexpr std::uint64_t receive_id = 1;

}  // namespace

RpingConversation::RpingConversation(CmId id, Terms terms, Events events)
    : id_(std::move(id)), terms_(std::move(terms)), events_(std::move(events)) {
    thread_ = std::thread([this] { run(); });
}

RpingConversation::~RpingConversation() {
    stop();
    thread_.join();
}

void RpingConversation::stop() {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
    if (connected_) connected_->break_off();
}

void RpingConversation::run() {
    // The client notices how it ends.
    static_cast<void>(serve());
    ended_ = true;
    events_.ended();
}

// Finds the port by the interface's address, as the other tests do.
Result<RpingConversation::Rdma> RpingConversation::open() const {
    VFMGR_TRY(auto endpoint, verify::open_host_endpoint(terms_.permit, port_time));
    auto* const pd = endpoint.pd.get();
    VFMGR_TRY(auto messages,
              verify::RegisteredMemory::make(pd, 2 * rping_message_bytes, IBV_ACCESS_LOCAL_WRITE,
                                             "rping's messages"));
    VFMGR_TRY(auto ping, verify::RegisteredMemory::make(pd, ping_bytes_max, IBV_ACCESS_LOCAL_WRITE,
                                                        "rping's ping"));
    // No remote access: the client can't read or write memory here.
    VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 4, .receives = 2}, 0));
    return Rdma{std::move(endpoint), std::move(messages), std::move(ping), std::move(pair)};
}

Result<void> RpingConversation::accept(Rdma& rdma) {
    VFMGR_CHECK(make_ready(id_, rdma.pair));
    auto parameters = parameters_for(rdma.pair);
    if (rdma_accept(id_.get(), &parameters) == 0) return {};
    return fail(
        cm_error(Problem::kernel_refused, "RDMA CM can't accept rping's client", "rdma_accept"));
}

Result<void> RpingConversation::serve() {
    VFMGR_TRY(auto rdma, open());
    VFMGR_CHECK(rdma.pair.receive(receive_id, rdma.messages.sge(0, rping_message_bytes)));
    {
        std::lock_guard const lock(mutex_);
        if (stopping_) return {};
        connected_ = &rdma.pair;
    }
    auto done = accept(rdma);
    auto deadline = Steady::now() + handshake_time;
    while (done) {
        done = move(rdma, Direction::read_ping, deadline);
        deadline = terms_.until;
        if (done) done = move(rdma, Direction::write_pong, deadline);
    }
    {
        std::lock_guard const lock(mutex_);
        connected_ = nullptr;
    }
    rdma_disconnect(id_.get());
    rdma.pair.shut(Steady::now() + verify::drain_wait);
    return done;
}

// One step of a ping: receive a message with the location, move the bytes, send a message that they
// have moved.
Result<void> RpingConversation::move(Rdma& rdma, Direction direction, Deadline deadline) {
    while (messages_ == 0) VFMGR_CHECK(await(rdma, IBV_WC_RECV, deadline));
    --messages_;
    auto const where = parse_rping_message(rdma.messages.bytes().first<rping_message_bytes>());
    VFMGR_CHECK(rdma.pair.receive(receive_id, rdma.messages.sge(0, rping_message_bytes)));
    if (where.length < 1 || where.length > ping_bytes_max)
        return fail(
            Problem::limit_exceeded,
            fmt::format("rping asks for {} bytes, more than {}", where.length, ping_bytes_max),
            "use a smaller -S");
    verify::RemoteTransfer const transfer{rdma.ping.sge(0, where.length), where.address,
                                          where.rkey};
    bool const reads = direction == Direction::read_ping;
    VFMGR_CHECK(reads ? rdma.pair.read(0, transfer) : rdma.pair.write(0, transfer));
    VFMGR_CHECK(await(rdma, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, terms_.until));
    if (!reads) {
        ++pings_;
        events_.pinged();
    }
    // The content of the go-ahead does not matter.
    VFMGR_CHECK(rdma.pair.send(0, rdma.messages.sge(rping_message_bytes, rping_message_bytes)));
    return await(rdma, IBV_WC_SEND, terms_.until);
}

// The client's next message may arrive before this end's completion.
Result<void> RpingConversation::await(Rdma& rdma, ibv_wc_opcode expected, Deadline deadline) {
    std::array<ibv_wc, 8> room{};
    bool found = false;
    while (!found) {
        VFMGR_TRY(auto const completions, rdma.pair.completions().wait(room, deadline));
        VFMGR_CHECK(verify::check_completions(completions, "rping"));
        for (auto const& completion : completions) {
            found = found || completion.opcode == expected;
            if (completion.opcode != IBV_WC_RECV) continue;
            if (completion.byte_len != rping_message_bytes)
                return fail(Problem::invalid_request, "a message is not one that rping sends",
                            "use rping of rdma-core");
            ++messages_;
        }
    }
    return {};
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds start_time{10}, last_word_time{1};
constexpr std::chrono::milliseconds report_interval{500};
constexpr std::string_view ready = "ready ";  // followed by the port

std::vector<std::string> words_of(Terms const& terms) {
    auto const& permit = terms.permit;
    return {to_string(permit.peer_address), to_string(permit.host_address), permit.host_netdev,
            std::to_string(terms.cm_port), std::to_string(seconds_left(terms.until))};
}

std::optional<Terms> terms_in(std::vector<std::string> const& words) {
    if (words.size() != 5) return std::nullopt;
    auto const peer = IpAddress::parse(words[0]);
    auto const host = IpAddress::parse(words[1]);
    auto const port = parse_digits(words[3], {10, 1, 5, 65535});
    auto const seconds = parse_digits(words[4], {10, 1, 5});
    if (!peer || !host || !port || !seconds) return std::nullopt;
    Terms terms;
    terms.permit.peer_address = *peer;
    terms.permit.host_address = *host;
    terms.permit.host_netdev = words[2];
    terms.cm_port = static_cast<std::uint16_t>(*port);
    terms.until = Steady::now() + std::chrono::seconds(*seconds);
    return terms;
}

std::string text_of(Served const& served) {
    return fmt::format("{} {} {}", served.served, served.refused, served.pings);
}

}  // namespace

Result<std::unique_ptr<RpingProcess>> RpingProcess::start(std::vector<std::string> program,
                                                          Terms const& terms) {
    for (auto& word : words_of(terms)) program.push_back(std::move(word));
    VFMGR_TRY(auto child, Child::start(std::move(program), "rping's server"));
    std::unique_ptr<RpingProcess> made(new RpingProcess(std::move(child)));
    VFMGR_CHECK(made->await_ready(Steady::now() + start_time));
    return made;
}

Result<void> RpingProcess::await_ready(Deadline deadline) {
    auto const message = child_->receive(deadline);
    if (message && message->starts_with(ready)) {
        auto const port = parse_digits(message->substr(ready.size()), {10, 1, 5, 65535});
        port_ = static_cast<std::uint16_t>(port.value_or(0));
        if (port_ != 0) return {};
    }
    return fail(Problem::unsupported, message ? *message : "rping's server ended without a result",
                "check the kernel log: dmesg | tail");
}

void RpingProcess::take(std::string_view message) const {
    auto const first = take_until(message, ' ');
    auto const second = take_until(message, ' ');
    auto const served = first ? parse_digits(*first, {}) : std::nullopt;
    auto const refused = second ? parse_digits(*second, {}) : std::nullopt;
    auto const pings = parse_digits(message, {});
    if (served && refused && pings) served_ = {*served, *refused, *pings};
}

Served RpingProcess::served() const {
    std::lock_guard const lock(mutex_);
    while (auto const message = child_->received()) take(*message);
    return served_;
}

Served RpingProcess::stop() {
    std::lock_guard const lock(mutex_);
    child_->end_input();
    auto const deadline = Steady::now() + last_word_time;
    while (auto const message = child_->receive(deadline)) take(*message);
    return served_;
}

int serve_rping(std::vector<std::string> const& words) {
    auto const terms = terms_in(words);
    if (!terms) return 2;
    // Ignores signals to the daemon's process group: the child ends when its standard input ends.
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    auto const server = CmServer::start(*terms);
    if (!server) {
        auto const& error = server.error();
        report_to_parent(detail_with_causes(error) + "; " + error.remedy);
        return 1;
    }
    report_to_parent(fmt::format("{}{}", ready, (*server)->port()));
    Served message;
    while (Steady::now() < terms->until && !await_end_of_input(Steady::now() + report_interval)) {
        auto const now = (*server)->served();
        // Reports pings only along with these: a socket that is not read must not fill up.
        if (now.served == message.served && now.refused == message.refused) continue;
        message = now;
        report_to_parent(text_of(now));
    }
    // Before the server ends, because that takes time.
    report_to_parent(text_of((*server)->served()));
    return 0;
}

}  // namespace vfmgr::interop
