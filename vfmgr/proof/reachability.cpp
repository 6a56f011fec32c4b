// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/reachability.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr::verify {

Measured measured(std::string_view name) {
    Measured made;
    made.result.name = name;
    made.result.verdict = Verdict::pass;
    made.result.by = Judge::guest;
    return made;
}

Measured measured_failure(std::string_view name, Error const& error) {
    auto made = measured(name);
    made.result.verdict = Verdict::fail;
    made.result.detail = detail_with_causes(error);
    made.result.remedy = error.remedy;
    return made;
}

Measured measured_skip(std::string_view name, Error const& error) {
    auto made = measured_failure(name, error);
    made.result.verdict = Verdict::skip;
    return made;
}

Measured measured(std::string_view name, Result<Measured> made) {
    if (!made) return measured_failure(name, made.error());
    made->result.name = name;
    return std::move(*made);
}

std::string printable(std::string_view text, std::size_t length_max) {
    std::string shown;
    for (char const ch : text.substr(0, length_max)) shown += ch >= ' ' && ch <= '~' ? ch : '?';
    if (text.size() > length_max) shown += "…";
    return shown;
}

std::uint64_t raw_nanoseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::map<std::string, double> rate_figures(std::uint64_t bytes, double seconds) {
    auto const amount = static_cast<double>(bytes);
    return {{"bandwidth_mbps", amount * 8 / 1e6 / seconds},
            {"bandwidth_mib_per_s", amount / (1024.0 * 1024) / seconds},
            {"seconds", seconds}};
}

Result<std::span<ibv_wc>> await(CompletionQueue& queue, std::span<ibv_wc> room, Deadline deadline,
                                std::string_view what, unsigned polls) {
    VFMGR_TRY(auto const found, queue.wait(room, deadline, polls));
    VFMGR_CHECK(check_completions(found, what));
    return found;
}

Result<void> await_all(CompletionQueue& queue, std::size_t count, Deadline deadline,
                       std::string_view what, unsigned polls) {
    std::array<ibv_wc, 4> room{};
    while (count > 0) {
        VFMGR_TRY(auto const found, await(queue, room, deadline, what, polls));
        count -= std::min(count, found.size());
    }
    return {};
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds answer_wait{500};
constexpr unsigned attempts_max = 12;  // ARP may take the first ones
constexpr unsigned answers_required = 3;
constexpr std::uint32_t smallest_mtu = 1280;  // the smallest that a vfmgr network may have
constexpr std::uint32_t mtu_step = 4;         // precision of the search for the largest MTU
constexpr unsigned tries_of_an_mtu = 2;
constexpr std::chrono::milliseconds try_wait{150};

struct Line {
    EchoTest const& test;
    FileDescriptor fd;
    std::vector<std::byte> question;
    unsigned sent = 0;
};

struct Answer {
    std::vector<std::byte> bytes;
    double round_trip_us = 0;
};

Error line_error(Line const& line, char const* call, int error_number) {
    auto const& attachment = line.test.attachment;
    Error error{Problem::kernel_refused,
                fmt::format("{} bytes can't be sent to {} over {}", line.question.size(),
                            to_string(attachment.responder), line.test.ifname),
                "check address and route in the VM"};
    if (error_number == EMSGSIZE)
        error.remedy = fmt::format("set MTU {} on {}", attachment.mtu, line.test.ifname);
    else if (error_number == ECONNREFUSED)
        error.remedy =
            "verify again: the host's responder does not listen, its session may have ended";
    else if (error_number == EHOSTUNREACH)
        error.remedy =
            "check carrier and VLAN of the VF and of the host's interface: ARP got no answer";
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

Result<Line> open_line(EchoTest const& test, EchoDatagram const& question) {
    auto const& attachment = test.attachment;
    VFMGR_TRY(auto fd, open_socket({attachment.address, 0, test.ifname}));
    Line line{test, std::move(fd), make_question(question)};
    auto const peer = SocketAddress::of(attachment.responder, attachment.echo_port);
    if (::connect(line.fd.get(), peer.get(), peer.length) != 0)
        return fail(line_error(line, "connect", errno));
    return line;
}

// Accepts only datagrams as long as the question.
Result<std::optional<Answer>> take_answer(Line& line, std::uint64_t asked, Deadline until) {
    std::vector<std::byte> room(line.question.size() + 1);
    while (Steady::now() < until) {
        if (await_readable(std::array{line.fd.get()}, until) != Readiness::readable) break;
        auto const got = ::recv(line.fd.get(), room.data(), room.size(), 0);
        if (got < 0 && errno != EAGAIN) return fail(line_error(line, "recv", errno));
        if (got < 0 || static_cast<std::size_t>(got) != line.question.size()) continue;
        room.resize(line.question.size());
        return Answer{std::move(room), static_cast<double>(raw_nanoseconds() - asked) / 1000};
    }
    return std::nullopt;
}

Result<std::optional<Answer>> ask(Line& line, std::chrono::milliseconds wait = answer_wait) {
    auto const asked = raw_nanoseconds();
    ++line.sent;
    if (::send(line.fd.get(), line.question.data(), line.question.size(), 0) < 0)
        return fail(line_error(line, "send", errno));
    return take_answer(line, asked, std::min(Steady::now() + wait, line.test.deadline));
}

Error no_answer(Line const& line) {
    auto const& attachment = line.test.attachment;
    return {Problem::timed_out,
            fmt::format("{} port {} answered none of {} datagrams of {} bytes over {}",
                        to_string(attachment.responder), attachment.echo_port, line.sent,
                        line.question.size(), line.test.ifname),
            "check MTU, VLAN and firewall of the VF and of the host's interface"};
}

Result<Measured> echo(EchoTest const& test, EchoDatagram const& question) {
    VFMGR_TRY(auto line, open_line(test, question));
    auto made = measured();
    unsigned answered = 0;
    double round_trip_us_min = 0;
    while (answered < answers_required && line.sent < attempts_max &&
           Steady::now() < test.deadline) {
        VFMGR_TRY(auto const answer, ask(line));
        if (!answer) continue;
        ++answered;
        auto const us = answer->round_trip_us;
        round_trip_us_min = answered == 1 ? us : std::min(us, round_trip_us_min);
        made.digest = digest_hex(test.attachment.nonce, answer->bytes);
    }
    if (answered == 0) return fail(no_answer(line));
    made.result.bytes_checked = question.bytes;
    made.result.figures = {
        {"round_trip_min_us", round_trip_us_min}, {"sent", line.sent}, {"answered", answered}};
    return made;
}

bool passes(EchoTest const& test, std::uint32_t mtu) {
    auto const bytes = full_datagram_bytes(mtu, test.attachment.address.family);
    auto line = open_line(test, {EchoKind::path_mtu, test.attachment.nonce, bytes});
    for (unsigned i = 0; line && i < tries_of_an_mtu; ++i) {
        auto const answer = ask(*line, try_wait);
        if (!answer) return false;  // longer than the interface itself accepts
        if (*answer) return true;
    }
    return false;
}

// Returns 0 if even the smallest does not pass: then the MTU is not the cause.
std::uint32_t largest_mtu(EchoTest const& test) {
    if (!passes(test, smallest_mtu)) return 0;
    auto good = smallest_mtu;
    auto bad = test.attachment.mtu;
    while (bad - good > mtu_step && Steady::now() < test.deadline) {
        auto const middle = good + (bad - good) / 2;
        (passes(test, middle) ? good : bad) = middle;
    }
    return good;
}

}  // namespace

Measured reachability(EchoTest const& test) {
    return measured(
        enum_name(Proof::reachability),
        echo(test, {EchoKind::reachability, test.attachment.nonce, reachability_bytes}));
}

Measured path_mtu(EchoTest const& test) {
    auto const bytes = full_datagram_bytes(test.attachment.mtu, test.attachment.address.family);
    auto made = measured(enum_name(Proof::path_mtu),
                         echo(test, {EchoKind::path_mtu, test.attachment.nonce, bytes}));
    if (made.result.verdict != Verdict::fail) return made;
    auto const mtu = largest_mtu(test);
    if (mtu == 0) return made;
    made.result.figures["largest_mtu_bytes"] = mtu;
    made.result.detail += fmt::format("; packets of {} bytes pass, packets of {} bytes do not", mtu,
                                      std::min(mtu + mtu_step, test.attachment.mtu));
    made.result.remedy = fmt::format(
        "something between VM and host has an MTU of about {} bytes: set {} on the VF, its PF, the "
        "host's VLAN device and every switch between",
        mtu, test.attachment.mtu);
    return made;
}

}  // namespace vfmgr::verify
