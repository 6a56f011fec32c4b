// SPDX-License-Identifier: Apache-2.0
#include "service/broker/link.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "api/os/socket_address.hpp"

namespace vfmgr::broker {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t greeting_bytes_max = 1024;

tl::unexpected<Error> no_broker(std::string detail) {
    return fail(Problem::unavailable, "the broker can't be asked: " + std::move(detail),
                "see what it says: systemctl status vfmgr-broker.socket vfmgr-broker.service");
}

// Takes the first line from the socket, and nothing after it: once for each connection, so a byte
// at a time is quick enough.
Result<std::string> first_line(int socket, Deadline deadline) {
    std::string line;
    while (line.size() < greeting_bytes_max) {
        VFMGR_TRY(auto const ready, await_readable(std::span(&socket, 1), deadline));
        if (ready == Readiness::deadline_passed) return no_broker("it does not greet in time");
        char byte = 0;
        auto const got = ::read(socket, &byte, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return no_broker("it ends at once");
        if (byte == '\n') return line;
        line += byte;
    }
    return no_broker("it does not greet");
}

Result<void> check_greeting(int socket, Deadline deadline) {
    VFMGR_TRY(auto const line, first_line(socket, deadline));
    auto const greeting = parse_greeting(line);
    if (!greeting) return no_broker("its greeting is of another program");
    if (greeting->protocol == protocol) return {};
    return fail(Problem::unavailable,
                fmt::format("the broker is of another version: {}", greeting->version),
                "restart both: systemctl restart vfmgr-broker.service vfmgrd.service");
}

std::uint64_t milliseconds_until(Deadline deadline) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    return left.count() > 0 ? static_cast<std::uint64_t>(left.count()) : 0;
}

}  // namespace

Link::Connection::~Connection() {
    ::shutdown(socket.get(), SHUT_RDWR);  // the receiver's read returns
    if (receiver.joinable()) receiver.join();
}

Link::Link(std::string socket_path, std::function<void(News)> on_news, LinkTimes times)
    : path_(std::move(socket_path)), on_news_(std::move(on_news)), times_(times) {}

Link::~Link() = default;

Result<std::shared_ptr<Link::Connection>> Link::connect() const {
    auto const address = SocketAddress::of_unix(path_);
    if (!address) return no_broker(fmt::format("{} is no path of a socket", path_));
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), address->get(), address->length) != 0)
        return no_broker(fmt::format("{}: {}", path_, errno_name(errno)));
    VFMGR_CHECK(check_greeting(socket.get(), Steady::now() + times_.greeting));
    auto connection = std::make_shared<Connection>();
    connection->socket = std::move(socket);
    connection->receiver = std::thread([this, &to = *connection] {
        static_cast<void>(each_line(to.socket.get(), [&](std::string const& line) {
            auto answer = parse_answer(line);
            if (!answer) return false;
            if (answer->id != 0)
                to.answers.take(std::move(*answer));
            else if (answer->news)
                on_news_(*answer->news);
            return true;
        }));
        ::shutdown(to.socket.get(), SHUT_RDWR);
        to.answers.end();
    });
    return connection;
}

Result<std::shared_ptr<Link::Connection>> Link::connected() {
    std::lock_guard const lock(mutex_);
    if (connection_ && !connection_->answers.ended()) return connection_;
    VFMGR_TRY(connection_, connect());
    // What happened while there was none is unknown.
    for (auto const news : {News::host, News::vms}) on_news_(news);
    return connection_;
}

std::optional<Answer> Link::ask_once(Connection& connection, Request& request, Deadline deadline) {
    request.id = connection.answers.expect();
    {
        std::lock_guard const lock(connection.sending);
        send_all(connection.socket.get(), to_line(request));
    }
    return connection.answers.await(request.id, deadline);
}

Result<Answer> Link::ask(Request request, Deadline deadline) {
    bool const limited = request.call == Call::perform || request.call == Call::settle;
    for (int brokers = 0; brokers < brokers_per_request_max; ++brokers) {
        VFMGR_TRY(auto const connection, connected());
        if (limited) request.milliseconds = milliseconds_until(deadline);
        auto answer = ask_once(*connection, request, deadline + times_.grace);
        if (answer && answer->error) return fail(std::move(*answer->error));
        if (answer) return std::move(*answer);
        if (!connection->answers.ended())
            return fail(Problem::timed_out, "the broker did not answer in time",
                        "see what it waits for: journalctl -u vfmgr-broker; journalctl -k");
    }
    return no_broker("it ended at this request");
}

namespace {

// An answer without what was asked for is a bug of the broker.
template <class T>
Result<T> required(std::optional<T> part) {
    if (part) return std::move(*part);
    return no_broker("its answer lacks what was asked for");
}

Observed observed_in(Answer answer, Time began) {
    Observed observed{std::move(answer.remarks), answer.counters};
    if (answer.vms) observed.vm = view_of(std::move(*answer.vms), began);
    return observed;
}

}  // namespace

Result<std::string> collect(Link& link, Call what) {
    VFMGR_TRY(auto answer, link.ask({.call = what}, Steady::now() + link.times().observe));
    return required(std::move(answer.facts));
}

Result<KernelView> BrokerKernel::observe(KernelScope const& scope) {
    Request request{.call = Call::observe};
    if (scope) {
        auto const* const pf = std::get_if<PciAddress>(&*scope);
        request.host_network = pf == nullptr;
        if (pf) request.pf = *pf;
    }
    VFMGR_TRY(auto answer, link_.ask(std::move(request), Steady::now() + link_.times().observe));
    VFMGR_TRY(auto view, required(std::move(answer.view)));
    view.complete = !scope;
    return view;
}

Result<Observed> BrokerKernel::perform(KernelStep const& step, Deadline deadline) {
    VFMGR_TRY(auto answer, link_.ask({.call = Call::perform, .step = step}, deadline));
    return observed_in(std::move(answer), Time{});
}

Result<std::vector<FirmwareCard>> BrokerKernel::read_firmware(
    std::optional<PciAddress> const& function) {
    VFMGR_TRY(auto answer, link_.ask({.call = Call::read_firmware, .pf = function},
                                     Steady::now() + link_.times().observe));
    return required(std::move(answer.firmware));
}

Result<std::vector<PfTraffic>> BrokerKernel::read_traffic(std::optional<PciAddress> const& pf) {
    VFMGR_TRY(auto answer, link_.ask({.call = Call::read_traffic, .pf = pf},
                                     Steady::now() + link_.times().observe));
    return required(std::move(answer.traffic));
}

Result<HypervisorView> BrokerHypervisor::observe(HypervisorScope const& scope) {
    auto const began = std::chrono::system_clock::now();
    VFMGR_TRY(auto answer, link_.ask({.call = Call::observe_vms, .vm_uuid = scope},
                                     Steady::now() + link_.times().observe));
    VFMGR_TRY(auto vms, required(std::move(answer.vms)));
    return view_of(std::move(vms), began);
}

Result<Observed> BrokerHypervisor::perform(HypervisorStep const& step, Deadline deadline) {
    auto const began = std::chrono::system_clock::now();
    VFMGR_TRY(auto answer, link_.ask({.call = Call::perform, .step = step}, deadline));
    return observed_in(std::move(answer), began);
}

Result<void> BrokerHypervisor::settle(std::string const& vm_uuid, Deadline deadline) {
    VFMGR_CHECK(link_.ask({.call = Call::settle, .vm_uuid = vm_uuid}, deadline));
    return {};
}

}  // namespace vfmgr::broker
