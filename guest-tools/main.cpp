// SPDX-License-Identifier: Apache-2.0
// vf-guest: finds the VFs that the host has attached to this VM, configures them, and proves RDMA
// over them. Also serves the other end of that proof.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "guest-tools/cli/command_line.hpp"
#include "guest-tools/cli/gpu.hpp"
#include "guest-tools/cli/report.hpp"
#include "guest-tools/cli/verify.hpp"
#include "guest-tools/gpu/all_reduce.hpp"
#include "guest-tools/net/resident.hpp"
#include "guest-tools/net/run_tests.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/interop/rping.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::guest;
using namespace vfmgr::guest::command;

constexpr char const* serve_rping_command = "serve-rping";

int up(Options const& options) {
    Resident resident(options.host, options.enrolments, records_of(options), print_line);
    if (!options.watch) {
        auto const done = resident.once();
        return done ? 0 : print_error(done.error());
    }
    auto const stop = stop_signals();
    if (!stop) return print_error(stop.error());
    auto const watched = resident.watch(stop->get());
    if (!watched) return print_error(watched.error());
    // Does not wait for the poll thread, which holds nothing that has to be undone.
    std::fflush(nullptr);
    std::_Exit(0);
}

int serve_others(Options const& options) {
    auto const stop = stop_signals();
    if (!stop) return print_error(stop.error());
    auto const served = serve::serve(options.serving, stop->get(), [&](serve::Served const& ready) {
        if (options.output == Output::text) return print_line(serve::ready_text(ready));
        print_document(serve::ready_json(ready));
        std::fflush(stdout);
    });
    return served ? 0 : print_error(served.error());
}

void print_status(std::vector<Configured> const& configured, Result<GuestConfig> const& config) {
    if (!config)
        print_text(fmt::format("host: not reachable: {}\n", config.error().detail));
    else
        print_text(fmt::format("host: {} attachments\n", config->attachments.size()));
    for (auto const& one : configured)
        print_text(
            fmt::format("{}  {}  {}  {}/{}  MTU {}  RDMA {}{}\n", one.attachment, one.ifname,
                        one.guid ? to_string(*one.guid) : to_string(one.mac.value_or(MacAddress{})),
                        to_string(one.address), one.prefix_length, one.mtu,
                        one.rdma_device.empty() ? "none" : one.rdma_device,
                        one.complete ? "" : "  (incomplete)"));
}

int status(Options const& options) {
    auto host = host_of(options);
    auto const configured = StateFolder(options.state_folder).load();
    auto const config = host.config(std::chrono::seconds(0), 0);
    if (options.output == Output::text) {
        print_status(configured, config);
        return config ? 0 : exit_code(config.error().problem);
    }
    nlohmann::json out{{"configured", nlohmann::json::array()}, {"config", nullptr}};
    for (auto const& one : configured) out["configured"].push_back(one);
    if (config) out["config"] = *config;
    print_json(out);
    return config ? 0 : exit_code(config.error().problem);
}

void add_verbose(CLI::App& command, Options& options) {
    command.add_flag_callback(
        "-v,--verbose", [&options] { options.figures = Figures::all; }, "also print every figure");
}

void add_verify_options(CLI::App& command, Options& options) {
    add_verbose(command, options);
    auto& selection = options.selection;
    command.add_option("test", selection.tests,
                       "tests to measure after the proofs (default: the profile's)");
    auto* const attachment = command.add_option("--attachment", options.attachment,
                                                "only this attachment (default: all)");
    add_choice(command, "--profile", selection.profile, "quick, default or deep");
    command.add_option("--size", selection.message_bytes, "bytes per message")
        ->check(CLI::Range(1, 8 << 20));
    command.add_option("--depth", selection.depth, "outstanding messages per queue pair")
        ->check(CLI::Range(1, 1024));
    command.add_option("--queue-pairs", selection.queue_pairs, "number of queue pairs")
        ->check(CLI::Range(1, 16));
    command.add_option("--messages", selection.messages, "number of messages, instead of a time")
        ->check(CLI::Range(1, 1'000'000));
    command.add_option("--seconds", selection.seconds, "seconds per test")
        ->check(CLI::Range(0.1, 20.0));
    auto& served = options.served;
    auto* const responder = command.add_option(
        "--responder", served.responder, "HOST:PORT of vf-guest serve (default: this VM's host)");
    auto* const fingerprint = command.add_option("--fingerprint", served.fingerprint,
                                                 "SHA-256 of the responder's certificate");
    auto* const token =
        command.add_option("--token-file", served.token_file, "file with the responder's token");
    command.add_option("--address", served.address, "address of this machine to test from")
        ->needs(responder);
    responder->needs(fingerprint)->needs(token);
    command
        .add_flag("--at-once", options.at_once,
                  "verify all attachments at the same time, not one after the other")
        ->excludes(responder)
        ->excludes(attachment);
}

void add_report_options(CLI::App& command, Options& options) {
    add_verbose(command, options);
    command.add_option("--attachment", options.attachment, "only this attachment (default: all)");
    command.add_option("--bundle", options.bundle_file,
                       "write what doctor reads to this file instead; - is standard output");
}

void add_serve_options(CLI::App& command, serve::ServeOptions& chosen) {
    command
        .add_option("--address", chosen.address,
                    "address of a netdev with RDMA that others test against")
        ->required();
    command.add_option("--listen", chosen.listen, "address for control (default: --address)");
    command.add_option("--port", chosen.port, "port for control, TCP with TLS")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    command.add_option("--state", chosen.state_folder, "folder with certificate and token")
        ->capture_default_str();
    command.add_option("--token-file", chosen.token_file,
                       "file with the token (default: one in the state folder)");
    command.add_option("--sessions", chosen.sessions, "sessions at the same time")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
}

// Adds the commands that read this machine.
void add_read_commands(CommandLine& line) {
    auto& options = line.options.doctor;
    auto* const doctor =
        line.add(line.app, "doctor",
                 "check whether this VM is ready for RDMA, and name the remedies", run_doctor);
    auto* const rdma =
        line.add(line.app, "rdma", "list RDMA ports with netdev, PCI function and GIDs", list_rdma);
    doctor->add_option("--symptom", options.symptom,
                       "only what may explain this symptom, up to the cause");
    doctor->add_flag("--all", options.all, "also print what passes");
    rdma->add_flag("--gids", options.gids, "print a line for each GID");
    for (auto* const command : {doctor, rdma}) {
        command->add_option("--from", options.from, "read a bundle instead of this machine");
        line.add_output(*command);
    }
}

void add_peermem_options(CLI::App& command, PeermemOptions& options) {
    auto* const explain =
        command.add_flag("--explain", options.explain,
                         "print what would be done and what prevents it; load nothing");
    command.add_option("--from", options.from, "read a bundle instead of this machine")
        ->needs(explain);
    auto* const wait = command.add_option_function<std::string>(
        "--wait",
        [&options](std::string const& text) {
            options.wait = parse_wait(text);
            if (!options.wait)
                throw CLI::ValidationError("--wait",
                                           "must be a time such as 90s, 10m or 1h, at most 24h");
        },
        "wait at most this long for OFED and NVIDIA's driver: 90s, 10m, 1h");
    wait->excludes(explain);
    command.add_flag("--despite-dma-buf", options.despite_dma_buf,
                     "load it even where DMA-BUF works, for programs that can't use that");
    auto* const at_boot =
        command.add_flag("--at-boot", options.at_boot, "also load it at each boot");
    command.add_flag("--not-at-boot", options.not_at_boot, "undo --at-boot; unload nothing")
        ->excludes(at_boot)
        ->excludes(explain)
        ->excludes(wait);
}

// Adds the commands that read GPUs.
void add_gpu_commands(CommandLine& line) {
    auto& options = line.options.gpu;
    auto* const gpu =
        line.add(line.app, "gpu", "list GPUs and how NICs reach their memory", list_gpus);
    auto* const test =
        line.add(*gpu, "test", "prove what can be proved on a GPU without the host", test_gpu);
    auto* const topology =
        line.add(*gpu, "topology", "show how far GPUs are from NICs, and what NCCL makes of it",
                 show_topology);
    topology->add_option("--write", options.topology_file,
                         "write what the host reports to this file, for NCCL");
    topology->add_flag("--measure", options.measures,
                       "measure how fast main memory and each NIC reach each GPU");
    test->add_option(
        "--gpu", options.pci,
        "PCI address (default: the GPU nearest to a NIC); the all-reduce takes all GPUs");
    test->add_option("--size", options.bytes, "bytes to check (default: 1 GiB, or what fits)")
        ->transform(CLI::AsSizeValue(false));
    test->add_option("--rounds", options.rounds, "rounds of allocating, exporting and closing")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    for (auto* const command : {gpu, test, topology}) line.add_output(*command);
}

// Adds the commands that vf-guest starts itself, for RDMA CM (vfmgr/proof/interop/child.hpp) and
// NCCL. Its help does not list them.
void add_child_commands(CommandLine& line) {
    auto const add = [&line](char const* name, int (*runs)(std::vector<std::string> const&)) {
        line.add(line.app, name, "", [runs](Options const& options) { return runs(options.words); })
            ->group("")
            ->add_option("words", line.options.words);
    };
    add(serve_rping_command, interop::serve_rping);
    add(cm_ping_command, interop::ping_by_cm);
    add(gpu::all_reduce_command, gpu::run_all_reduce);
}

Run as_root(int (*runs)(Options const&)) {
    return [runs](Options const& options) {
        if (::geteuid() == 0) return runs(options);
        return print_error({Problem::forbidden,
                            "vf-guest must run as root: it configures netdevs, and the host "
                            "accepts only source ports below 1024",
                            "run it with sudo"});
    };
}

int report_or_bundle(Options const& options) {
    return options.bundle_file.empty() ? run_report(options) : write_bundle(options);
}

int print_version(Options const&) {
    return print_text(fmt::format("vf-guest {}\n", VFMGR_VERSION)), 0;
}

void add_shared_options(CLI::App& app, Options& options) {
    app.require_subcommand(1);
    app.set_version_flag("--version", "vf-guest " VFMGR_VERSION);
    app.add_option("--host-cid", options.host.cid, "vsock CID of the host")->capture_default_str();
    app.add_option("--host-port", options.host.port, "vsock port of the guest plane")
        ->capture_default_str();
    app.add_option("--state", options.state_folder, "folder that records what was configured")
        ->capture_default_str();
    app.add_option("--reports", options.report_folder,
                   "folder that keeps the reports of verifications")
        ->capture_default_str();
}

void add_commands(CommandLine& line) {
    auto& app = line.app;
    auto& options = line.options;
    auto* const up_command =
        line.add(app, "up", "configure the VFs and run requested tests", as_root(up));
    up_command->add_flag("--watch", options.watch, "keep running and follow every change");
    auto* const verify_command = line.add(
        app, "verify", "prove RDMA now; exit status 0 only on a pass", as_root(run_verify));
    add_verify_options(*verify_command, options);
    auto* const report_command = line.add(
        app, "report", "print what the last verifications found; run nothing", report_or_bundle);
    add_report_options(*report_command, options);
    add_read_commands(line);
    auto* const peermem_command =
        line.add(app, "peermem",
                 "load the module by which NICs reach GPU memory, where it is needed", run_peermem);
    add_peermem_options(*peermem_command, options.peermem);
    add_gpu_commands(line);
    add_stream_commands(line);
    auto* const serve_command = line.add(
        app, "serve", "be the other end of verify for other machines", as_root(serve_others));
    add_serve_options(*serve_command, options.serving);
    auto* const status_command =
        line.add(app, "status", "what is configured and requested", as_root(status));
    line.add(app, "version", "print the version", print_version);
    for (auto* command : {up_command, verify_command, report_command})
        command->add_option(
            "--metrics", options.metrics_file,
            "write all that is configured and reported to this file, for Prometheus");
    for (auto* command :
         {verify_command, report_command, peermem_command, serve_command, status_command})
        line.add_output(*command);
    add_child_commands(line);
}

int run(int count, char** arguments) {
    CommandLine line;
    add_shared_options(line.app, line.options);
    add_commands(line);
    line.options.serving.rping_program = {"/proc/self/exe", serve_rping_command};
    try {
        line.app.parse(count, arguments);
    } catch (CLI::ParseError const& error) {
        return line.app.exit(error) == 0 ? 0 : 2;
    }
    if (line.output == "json") line.options.output = Output::json;
    return line.run(line.options);
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return ended_with(run(count, arguments));
    } catch (std::exception const& error) {
        warn_text(fmt::format("vf-guest: {}\n", error.what()));
        return 1;
    }
}
