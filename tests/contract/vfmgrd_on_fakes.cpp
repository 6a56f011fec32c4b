// SPDX-License-Identifier: Apache-2.0
// The real vfmgrd, run(), with the real vfmgr-guestd, on a host of fakes:
//
//   vfmgrd_on_fakes --config vfmgr.toml --host host.json [--config-dir FOLDER] [--guests SOCKET]
//                   [--responder FOLDER --responder-port PORT] [--kept FILE]
//
// fake_host.hpp describes the host's document. Changes to the host come as lines of JSON on
// standard input; each is answered by one line, "done" or the reason why not. Guests connect to a
// unix socket and identify themselves: X-Vsock-Cid, and X-Vsock-Port, 1023 by default. From the
// machine that it runs on it still reads what host/checks shows, and network events. With
// --responder, another host's responder (vf-guest serve) answers at 127.0.0.1, with its token and
// certificate in FOLDER. With --kept, the host outlives the process (kept_host.hpp). For contract
// tests and benches.
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "api/types/json.hpp"
#include "service/attend.hpp"
#include "service/guest/serve.hpp"
#include "service/run.hpp"
#include "tests/contract/fake_host.hpp"
#include "tests/contract/scripted_guests.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/proof/serve/credentials.hpp"
#include "vfmgr/proof/serve/responder_server.hpp"

namespace vfmgr::fakes {
namespace {

constexpr std::uint32_t privileged_port = 1023;

std::optional<std::uint32_t> number_in(http::Request const& request, char const* header) {
    auto const found = request.headers.find(header);
    if (found == request.headers.end()) return {};
    std::uint32_t number = 0;
    auto const& text = found->second;
    auto const parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return {};
    return number;
}

// A client that sends no CID keeps the socket's peer: no VM.
http::Handler as_guests(http::Handler handler) {
    return [handler = std::move(handler)](http::Request request, http::Respond respond) {
        if (auto const cid = number_in(request, "x-vsock-cid"))
            request.peer =
                http::VsockPeer{*cid, number_in(request, "x-vsock-port").value_or(privileged_port)};
        handler(std::move(request), std::move(respond));
    };
}

using Guestd = std::unique_ptr<guestd::Service>;

// The program's vfmgr-guestd. Guests connect to the socket, if it has a name.
Result<Guestd> start_guestd(FakeHost& host, std::string const& socket, http::Limits const& limits,
                            std::filesystem::path const& folder) {
    VFMGR_TRY(
        auto service,
        guestd::Service::start({[&host](verify::SessionPermit const&) { return host.check_peer(); },
                                {"/proc/self/exe", "--rping"},
                                system_clock(),
                                [](std::string const& what) { std::cerr << what << "\n"; },
                                limits,
                                folder}));
    if (!socket.empty()) VFMGR_CHECK(service->listen(http::UnixListen{socket}, as_guests));
    return service;
}

// Each call connects vfmgrd to it anew, and ends an earlier connection.
guestd::Link::Connect connect_to(guestd::Service& service, FakeHost const& host) {
    return [&service, &host]() -> Result<FileDescriptor> {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            return fail(Problem::unavailable, "no socket", "see the cause");
        FileDescriptor front(ends[1]);
        service.serve(FileDescriptor(ends[0]));
        if (host.guestd_down())
            return fail(Problem::unavailable, "the test stopped vfmgr-guestd", "start it again");
        return front;
    };
}

// Stands for vf-guest serve, on the loopback device.
class OtherResponder {
  public:
    Result<void> start(FakeHost& host, std::string const& folder, std::uint16_t port,
                       http::Limits const& limits) {
        auto const address = IpAddress::parse("127.0.0.1").value();
        VFMGR_TRY(auto const credentials, serve::credentials_in(folder, "", "127.0.0.1"));
        VFMGR_TRY(responder_, verify::Responder::start(verify::ResponderLimits{},
                                                       [&host](verify::SessionPermit const&) {
                                                           return host.check_peer();
                                                       }));
        serve::Served const served{
            {VFMGR_VERSION, address, responder_->echo_port(), {}, 65535, "fake"},
            "lo",
            {"127.0.0.1", port},
            credentials};
        answering_ = std::make_unique<serve::ResponderServer>(served, *responder_);
        server_ = std::make_unique<http::Server>(limits);
        VFMGR_CHECK(server_->listen(
            http::TlsListen{"127.0.0.1", port, credentials.certificate_file, credentials.key_file},
            answering_->handler()));
        server_->start();
        return {};
    }

  private:
    std::unique_ptr<verify::Responder> responder_;
    std::unique_ptr<serve::ResponderServer> answering_;
    std::unique_ptr<http::Server> server_;  // stopped first
};

// Runs until standard input ends; main() returns without waiting for it.
void let_happen(FakeHost& host, Bell& bell) {
    for (std::string line; std::getline(std::cin, line);) {
        auto const happened = host.happen(line);
        bell.ring(News::vms);
        std::cout << (happened ? "done" : happened.error().detail) << std::endl;
    }
}

int failed(Error const& error) {
    std::cerr << "vfmgrd_on_fakes: " << detail_with_causes(error) << "\n";
    for (auto const& violation : error.violations)
        std::cerr << "  " << violation.pointer << " " << violation.detail << "\n";
    return 1;
}

Result<nlohmann::json> document(std::string const& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return parse_json(text.str());
}

// Pairs such as "--config FILE". A child that serves rping parses its own words.
std::map<std::string, std::string> options(std::vector<std::string> const& words) {
    std::map<std::string, std::string> named;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) named[words[i]] = words[i + 1];
    return named;
}

int run_on_fakes(std::vector<std::string> const& words) {
    auto named = options(words);
    auto const& more = named["--config-dir"];
    ConfigPaths const paths{named["--config"], more.empty() ? "/nonexistent" : more, true};
    auto const config = load_config(paths);
    if (!config) return failed(config.error());
    auto const described = document(named["--host"]);
    if (!described) return failed(described.error());
    // Never destroyed: the thread that reads standard input ends only with the process.
    static auto& host = *new FakeHost;
    static auto& bell = *new Bell;
    if (auto const loaded = host.load(*described); !loaded) return failed(loaded.error());
    if (auto const& file = named["--kept"]; !file.empty())
        if (auto const kept = host.keep(file); !kept) return failed(kept.error());
    OtherResponder other;
    if (auto const& folder = named["--responder"]; !folder.empty()) {
        auto const port = static_cast<std::uint16_t>(std::stoi(named["--responder-port"]));
        if (auto const started = other.start(host, folder, port, config->limits); !started)
            return failed(started.error());
    }
    block_signals();
    auto const events = HostEvents::start([] { bell.ring(News::host); });
    if (!events) return failed(events.error());
    auto const guests = start_guestd(host, named["--guests"], config->limits,
                                     std::filesystem::path(paths.file).parent_path());
    if (!guests) return failed(guests.error());
    ScriptedGuests scripted([] { return host.verdict().value_or(Verification{}); });
    auto const connect = host.verdict()
                             ? guestd::Link::Connect([&scripted] { return scripted.connect(); })
                             : connect_to(**guests, host);
    host.on_guestd_down([&connect] { static_cast<void>(connect().has_value()); });
    std::thread([] { let_happen(host, bell); }).detach();
    HostSeams const seams{host.kernel(), host.hypervisor(), connect,
                          [] { return checks::collect({CheckedMachine::host}); },
                          [] { return checks::collect_owners({}); }};
    auto const served =
        run(*config, [&paths] { return load_config(paths); }, seams, bell, system_clock());
    return served ? 0 : failed(served.error());
}

}  // namespace
}  // namespace vfmgr::fakes

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    // The program that rping's server is started from.
    if (!words.empty() && words.front() == "--rping")
        return vfmgr::interop::serve_rping({words.begin() + 1, words.end()});
    return vfmgr::fakes::run_on_fakes(words);
}
