// SPDX-License-Identifier: Apache-2.0
// vf-guest: finds the VFs that the host has lent to this VM, configures them, proves RDMA over
// them; and serves the other end of that proof.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ranges>

#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/find_vf.hpp"
#include "guest-tools/net/resident.hpp"
#include "guest-tools/net/verify_served.hpp"
#include "guest-tools/serve/serve.hpp"
#include "guest-tools/verify/report.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::guest;

constexpr std::chrono::seconds kernel_time{10};
constexpr std::chrono::seconds configure_time{30};

enum class Output { text, json };

// What `verify` measures after the proofs.
struct Wanted {
    std::vector<std::string> tests;  // empty: the profile's
    Profile profile = Profile::default_;
    std::optional<std::uint32_t> message_bytes, depth, queue_pairs;
    std::optional<std::uint64_t> messages;
    std::optional<double> seconds;
};

// A responder that another machine serves, in place of the host.
struct ServedOptions {
    std::string responder;  // empty: the host
    std::string fingerprint;
    std::string token_file;
    std::string address;
};

struct Options {
    http::VsockTarget host{.cid = 2, .port = 8471, .source = http::SourcePort::privileged};
    std::string state_folder = "/run/vf-guest";
    std::string attachment;  // empty: all
    Output output = Output::text;
    Wanted wanted;
    ServedOptions served;
    serve::ServeWish serving;
};

int told(Error const& error) {
    fmt::print(stderr, "vf-guest: {}\n", error.detail);
    for (auto const& cause : error.causes)
        fmt::print(stderr, "  {}: {} ({})\n", cause.call, cause.code, cause.text);
    if (!error.remedy.empty()) fmt::print(stderr, "  remedy: {}\n", error.remedy);
    return exit_code(error.problem);
}

void tell(std::string const& line) {
    fmt::print("vf-guest: {}\n", line);
    std::fflush(stdout);
}

Result<FileDescriptor> stop_signals() {
    sigset_t signals{};
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    // Before any thread is started, so that none of them is interrupted.
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    FileDescriptor made(::signalfd(-1, &signals, SFD_CLOEXEC));
    if (made) return made;
    return fail(Problem::limit_exceeded, "no signal descriptor", "raise the limit of open files");
}

int up(Options const& options, bool watch) {
    Resident resident(options.host, StateFolder(options.state_folder), tell);
    if (!watch) {
        auto const done = resident.once();
        return done ? 0 : told(done.error());
    }
    auto const stop = stop_signals();
    if (!stop) return told(stop.error());
    auto const watched = resident.watch(stop->get());
    if (!watched) return told(watched.error());
    // Without waiting for the poll thread, which holds nothing that has to be undone.
    std::fflush(nullptr);
    std::_Exit(0);
}

// The VF's netdev, configured: by the resident vf-guest, or else now.
Result<std::string> ready_netdev(Options const& options, GuestAttachment const& attachment) {
    auto const deadline = std::chrono::steady_clock::now() + kernel_time;
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    StateFolder const state(options.state_folder);
    auto const work = compare({attachment}, state.load(), netdevs);
    if (!work.ready.empty()) return find_vf(netdevs, attachment.mac)->name;
    if (work.configure.empty())
        return fail(Problem::unsupported,
                    fmt::format("no netdev with MAC {} is in the VM", to_string(attachment.mac)),
                    "check that the VF is plugged in and that its driver is loaded");
    auto const& one = work.configure.front();
    VFMGR_TRY(auto const configured, configure(one.attachment, one.netdev, state,
                                               std::chrono::steady_clock::now() + configure_time));
    return configured.ifname;
}

void set_load(verify::Load& load, Wanted const& wanted) {
    if (wanted.message_bytes) load.size.message_bytes = *wanted.message_bytes;
    if (wanted.depth) load.size.depth = *wanted.depth;
    if (wanted.queue_pairs) load.size.pairs = *wanted.queue_pairs;
    if (wanted.messages) load.messages = *wanted.messages;
    if (wanted.seconds)
        load.window = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(*wanted.seconds));
}

Result<std::vector<verify::Measurement>> measurements(Wanted const& wanted) {
    if (wanted.tests.empty()) return verify::measurements_of(wanted.profile);
    auto const all = verify::all_measurements();
    std::vector<verify::Measurement> chosen;
    for (auto const& name : wanted.tests) {
        auto const* const found = verify::find_measurement(all, name);
        if (!found)
            return fail(Problem::invalid_request, fmt::format("there is no test {}", name),
                        fmt::format("choose of {}",
                                    fmt::join(all | std::views::transform(
                                                        [](auto const& each) { return each.name; }),
                                              ", ")));
        set_load(chosen.emplace_back(*found).load, wanted);
    }
    return chosen;
}

void tell_test(TestResult const& test) {
    fmt::print(stderr, "  {}: {}\n", test.name, enum_name(test.verdict));
}

verify::GuestSession::OnTest on_test(Options const& options) {
    bool const live = options.output == Output::text && ::isatty(STDERR_FILENO) == 1;
    return live ? tell_test : verify::GuestSession::OnTest();
}

// Tests that are named come on top of the proofs, whatever the profile.
Profile profile_of(Wanted const& wanted) {
    return wanted.tests.empty() ? wanted.profile : Profile::quick;
}

Result<Verification> verify_one(Options const& options, HostClient& host,
                                std::string const& attachment,
                                std::vector<verify::Measurement> const& measured) {
    VFMGR_TRY(auto const wanted, host.start_run(attachment, {profile_of(options.wanted)}));
    auto const ifname = ready_netdev(options, wanted);
    if (!ifname) return host.report_error(wanted.run.value_or(""), wanted.nonce, ifname.error());
    return run_tests(host, {wanted, *ifname}, measured, on_test(options));
}

Result<ServedTest> served_test(Options const& options) {
    auto const place = parse_host_port(options.served.responder, responder_tls_port);
    if (!place)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is no HOST:PORT", options.served.responder),
                    "name the responder as vf-guest serve printed it");
    ServedTest test;
    test.responder = {*place, options.served.fingerprint, {}};
    VFMGR_TRY(test.responder.token, serve::read_token_file(options.served.token_file));
    if (!options.served.address.empty()) {
        VFMGR_TRY(test.address, IpAddress::parse(options.served.address));
    }
    test.profile = profile_of(options.wanted);
    return test;
}

// What one verification of several leaves behind: output, and the exit code.
int tell_verification(Options const& options, Result<Verification> const& verification,
                      nlohmann::json& results) {
    if (!verification) return told(verification.error());
    if (options.output == Output::text) fmt::print("{}", verify::describe(*verification));
    to_json(results.emplace_back(), *verification);
    return verification->verdict == Verdict::pass ? 0 : 1;
}

int verify_against_served(Options const& options,
                          std::vector<verify::Measurement> const& measured) {
    auto const test = served_test(options);
    if (!test) return told(test.error());
    auto results = nlohmann::json::array();
    int const code =
        tell_verification(options, verify_served(*test, measured, on_test(options)), results);
    if (options.output == Output::json) fmt::print("{}\n", results.dump(2));
    return code;
}

int verify(Options const& options) {
    auto const measured = measurements(options.wanted);
    if (!measured) return told(measured.error());
    if (!options.served.responder.empty()) return verify_against_served(options, *measured);
    HostClient host(options.host);
    auto const config = host.config(std::chrono::seconds(0), 0);
    if (!config) return told(config.error());
    auto results = nlohmann::json::array();
    int worst = 0;
    std::size_t tried = 0;
    for (auto const& attachment : config->attachments) {
        if (!options.attachment.empty() && options.attachment != attachment.attachment) continue;
        ++tried;
        auto const verification = verify_one(options, host, attachment.attachment, *measured);
        worst = std::max(worst, tell_verification(options, verification, results));
    }
    if (options.output == Output::json) fmt::print("{}\n", results.dump(2));
    if (tried > 0) return worst;
    return told({Problem::not_found, "the host has lent no such VF to this VM",
                 "attach one on the host: vfctl attach"});
}

int serve_others(Options const& options) {
    auto const stop = stop_signals();
    if (!stop) return told(stop.error());
    auto const served =
        serve::serve(options.serving, stop->get(), [&](serve::ServeReady const& ready) {
            if (options.output == Output::text) return tell(serve::ready_text(ready));
            fmt::print("{}\n", serve::ready_json(ready));
            std::fflush(stdout);
        });
    return served ? 0 : told(served.error());
}

void print_status(std::vector<Configured> const& configured, Result<GuestConfig> const& config) {
    if (!config)
        fmt::print("host: not reachable: {}\n", config.error().detail);
    else
        fmt::print("host: {} attachments\n", config->attachments.size());
    for (auto const& one : configured)
        fmt::print("{}  {}  {}  {}/{}  MTU {}  RDMA {}{}\n", one.attachment, one.ifname,
                   to_string(one.mac), to_string(one.address), one.prefix_length, one.mtu,
                   one.rdma_device.empty() ? "none" : one.rdma_device,
                   one.complete ? "" : "  (not complete)");
}

int status(Options const& options) {
    auto const configured = StateFolder(options.state_folder).load();
    HostClient host(options.host);
    auto const config = host.config(std::chrono::seconds(0), 0);
    if (options.output == Output::text) {
        print_status(configured, config);
        return config ? 0 : exit_code(config.error().problem);
    }
    nlohmann::json out{{"configured", nlohmann::json::array()}, {"config", nullptr}};
    for (auto const& one : configured) to_json(out["configured"].emplace_back(), one);
    if (config) to_json(out["config"], *config);
    fmt::print("{}\n", out.dump(2));
    return config ? 0 : exit_code(config.error().problem);
}

void add_verify_options(CLI::App& command, Options& options) {
    auto& wanted = options.wanted;
    command.add_option("test", wanted.tests, "measured after the proofs; default the profile's");
    command.add_option("--attachment", options.attachment, "one attachment; default all");
    command.add_option_function<std::string>(
        "--profile",
        [&wanted](std::string const& text) {
            auto const profile = enum_value<Profile>(text);
            if (!profile)
                throw CLI::ValidationError("--profile", "is one of " + enum_choices<Profile>());
            wanted.profile = *profile;
        },
        "quick, default or deep");
    command.add_option("--size", wanted.message_bytes, "bytes of a message")
        ->check(CLI::Range(1, 8 << 20));
    command.add_option("--depth", wanted.depth, "outstanding messages of a queue pair")
        ->check(CLI::Range(1, 1024));
    command.add_option("--queue-pairs", wanted.queue_pairs, "how many")->check(CLI::Range(1, 16));
    command.add_option("--messages", wanted.messages, "how many, in place of a time")
        ->check(CLI::Range(1, 1'000'000));
    command.add_option("--seconds", wanted.seconds, "how long")->check(CLI::Range(0.1, 20.0));
    auto& served = options.served;
    auto* const responder = command.add_option(
        "--responder", served.responder, "HOST:PORT of vf-guest serve; default: this VM's host");
    auto* const fingerprint =
        command.add_option("--fingerprint", served.fingerprint, "SHA-256 of its certificate");
    auto* const token = command.add_option("--token-file", served.token_file, "holds its token");
    command.add_option("--address", served.address, "of this machine, to be tested from")
        ->needs(responder);
    responder->needs(fingerprint)->needs(token);
}

void add_serve_options(CLI::App& command, serve::ServeWish& wish) {
    command.add_option("--address", wish.address, "of a netdev with RDMA, tested against")
        ->required();
    command.add_option("--listen", wish.listen, "address for control; default the one above");
    command.add_option("--port", wish.port, "for control, TCP with TLS")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    command.add_option("--state", wish.state_folder, "folder of certificate and token")
        ->capture_default_str();
    command.add_option("--token-file", wish.token_file, "default one in the state folder");
    command.add_option("--sessions", wish.sessions, "at once")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
}

int run(int count, char** arguments) {
    CLI::App app{"Configures the VFs lent to this VM and proves RDMA over them"};
    app.require_subcommand(1);
    Options options;
    bool watch = false;
    std::string output = "text";
    app.add_option("--host-cid", options.host.cid, "vsock CID of the host")->capture_default_str();
    app.add_option("--host-port", options.host.port, "vsock port of the guest plane")
        ->capture_default_str();
    app.add_option("--state", options.state_folder, "folder of what was configured")
        ->capture_default_str();
    auto* const up_command = app.add_subcommand("up", "configure the VFs, verify what is wanted");
    up_command->add_flag("--watch", watch, "stay, and follow every change");
    auto* const verify_command = app.add_subcommand("verify", "prove RDMA now; 0 only on a pass");
    add_verify_options(*verify_command, options);
    auto* const serve_command =
        app.add_subcommand("serve", "be the other end of such a proof for other machines");
    add_serve_options(*serve_command, options.serving);
    auto* const status_command = app.add_subcommand("status", "what is configured and wanted");
    auto* const version_command = app.add_subcommand("version", "print the version");
    for (auto* command : {verify_command, serve_command, status_command})
        command->add_option("-o,--output", output, "text or json")
            ->check(CLI::IsMember({"text", "json"}));
    try {
        app.parse(count, arguments);
    } catch (CLI::ParseError const& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (output == "json") options.output = Output::json;
    if (version_command->parsed()) return fmt::print("vf-guest {}\n", VFMGR_VERSION), 0;
    if (::geteuid() != 0)
        return told({Problem::forbidden,
                     "vf-guest must be root: it configures netdevs, and the host "
                     "takes source ports below 1024 only",
                     "run it with sudo"});
    if (up_command->parsed()) return up(options, watch);
    if (verify_command->parsed()) return verify(options);
    if (serve_command->parsed()) return serve_others(options);
    return status_command->parsed() ? status(options) : 2;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run(count, arguments);
    } catch (std::exception const& error) {
        fmt::print(stderr, "vf-guest: {}\n", error.what());
        return 1;
    }
}
