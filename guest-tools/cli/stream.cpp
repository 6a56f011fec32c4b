// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "guest-tools/cli/command_line.hpp"
#include "guest-tools/cli/report.hpp"
#include "guest-tools/cli/verify.hpp"
#include "guest-tools/gpu/gpu_ring.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/text.hpp"
#include "vfmgr/proof/serve/local_end.hpp"

namespace vfmgr::guest::command {
namespace {

// Prints a line for each event, at once: the reader may be a program that waits for it.
void print_line(nlohmann::json const& document) {
    print_document(document.dump());
    std::fflush(stdout);
}

int finish(Options const& options, stream::Summary const& summary) {
    if (options.output == Output::json)
        print_line(stream::document(summary));
    else
        print_text(stream::describe(summary));
    return summary.nothing_lost() ? 0 : 1;
}

std::string begun_text(stream::Opening const& opening) {
    return fmt::format("packets of {} bytes over {} in chunks of {}, run {}", opening.packet_bytes,
                       enum_name(opening.over), opening.chunk, opening.run);
}

nlohmann::json begun_document(stream::Opening const& opening) {
    nlohmann::json made(opening);
    made["type"] = "begun";
    return made;
}

stream::ReceiveEvents events(Options const& options) {
    bool const json = options.output == Output::json;
    auto const local = options.stream.local;
    stream::ReceiveEvents made;
    made.ready = [json, local](std::uint16_t port) {
        if (json) return print_line({{"type", "ready"}, {"local", local}, {"port", port}});
        print_line(fmt::format("waiting for a sender on {} port {}", local, port));
    };
    made.begun = [json](stream::Opening const& opening, IpAddress const& sender,
                        stream::RingPlace const& ring) {
        if (!json)
            return print_line(fmt::format("{} sends {}; received {}", to_string(sender),
                                          begun_text(opening), stream::describe(ring)));
        auto document = begun_document(opening);
        document["sender"] = to_string(sender);
        document.update(nlohmann::json(ring));
        print_line(document);
    };
    made.refused = [](Error const& error) {
        print_error(error);
        warn_text(fmt::format("vf-guest: waiting for the next sender\n"));
    };
    made.second = [json](stream::Interval const& second) {
        if (json) return print_line(stream::document(second));
        print_text(fmt::format("{}\n", stream::describe(second)));
        std::fflush(stdout);
    };
    return made;
}

Result<std::unique_ptr<gpu::GpuRings>> open_rings(Options const& options, IpAddress const& local) {
    auto const facts = gpu::collect_facts({});
    auto const machine = checks::read_machine(facts);
    VFMGR_TRY(auto found, gpu::find_gpus(machine));
    if (auto const end = serve::find_local_end(local))
        gpu::measure_from(machine, end->netdev.name, found.infos);
    VFMGR_TRY(auto const at, gpu::choose_gpu(found.infos, options.stream.gpu));
    return gpu::GpuRings::open(std::move(found), at);
}

Result<stream::Summary> receive_counted(Options const& options, int stop) {
    stream::ReceiveOptions chosen = options.stream.receive;
    VFMGR_TRY(chosen.local, IpAddress::parse(options.stream.local));
    if (options.stream.memory == stream::Memory::host) {
        if (options.stream.gpu.empty()) return stream::receive(chosen, events(options), stop);
        return fail(Problem::invalid_request, "--gpu needs --memory gpu",
                    "add --memory gpu, or leave --gpu out");
    }
    auto const rings = open_rings(options, chosen.local);
    if (!rings) {
        auto error = rings.error();
        error.remedy += "; or receive with --memory host";
        return fail(std::move(error));
    }
    chosen.make_ring = [&](auto const& shape, auto const* endpoint) {
        return (*rings)->make(shape, endpoint);
    };
    if (options.output == Output::text)
        print_line(fmt::format("will receive into the memory of GPU {}, {}",
                               to_string((*rings)->gpu.pci), (*rings)->gpu.name));
    return stream::receive(chosen, events(options), stop);
}

Result<stream::Summary> send_counted(Options const& options, int stop) {
    stream::SendOptions chosen = options.stream.send;
    VFMGR_TRY(chosen.to, IpAddress::parse(options.stream.to));
    if (!options.stream.local.empty()) {
        VFMGR_TRY(chosen.local, IpAddress::parse(options.stream.local));
    }
    auto const begun = [&](stream::Opening const& opening) {
        if (options.output == Output::json) return print_line(begun_document(opening));
        print_line(fmt::format("sending {} {}", to_string(chosen.to), begun_text(opening)));
    };
    return stream::send(chosen, begun, stop);
}

template <class Run>
int with_stop(Options const& options, Run run) {
    auto const stop = stop_signals();
    if (!stop) return print_error(stop.error());
    auto const summary = run(options, stop->get());
    return summary ? finish(options, *summary) : print_error(summary.error());
}

constexpr double seconds_max = 30.0 * 86'400;
constexpr double packets_max = 1e14;
// These are ints: each other type of check adds another instance of CLI11's templates.
constexpr int packet_bytes_min = stream::packet_bytes_min;
constexpr int packet_bytes_max = 65'507;  // of UDP over IPv4; ud checks its own limit
constexpr int chunk_max = stream::chunk_max;

template <class Time>
CLI::Option* add_seconds(CLI::App& command, Time& time, char const* help) {
    auto const set = [&time](double seconds) {
        time = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(seconds));
    };
    return command.add_option_function<double>("--seconds", set, help)
        ->check(CLI::Range(0.1, seconds_max));
}

void add_port(CLI::App& command, std::uint16_t& port) {
    command.add_option("--port", port, "port of TCP and UDP")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
}

void add_receive_options(CLI::App& command, StreamOptions& options) {
    auto& chosen = options.receive;
    command.add_option("--local", options.local, "address of a netdev here to receive at")
        ->required();
    add_port(command, chosen.port);
    add_choice(command, "--over", chosen.over, "udp or ud (default: what the sender asks for)");
    auto* const bytes =
        command
            .add_option("--ring-bytes", chosen.ring.bytes,
                        "length of the ring that packets are received into, as 16MiB")
            ->transform(CLI::AsSizeValue(false));
    command
        .add_option("--chunks", chosen.ring.chunks,
                    "length of the ring in chunks, instead of bytes (default: 256)")
        ->check(CLI::Range(1, 1 << 20))
        ->excludes(bytes);
    auto* const memory = add_choice(command, "--memory", options.memory,
                                    "memory of the ring: host (the default) or gpu");
    command.add_option("--gpu", options.gpu, "PCI address (default: the GPU nearest to --local)")
        ->needs(memory);
    add_seconds(command, chosen.time,
                "seconds at most, including the wait for a sender (default: no limit)");
}

void add_send_options(CLI::App& command, StreamOptions& options) {
    auto& chosen = options.send;
    command.add_option("--to", options.to, "the receiver's --local address")->required();
    command.add_option("--local", options.local, "address here to send from");
    add_port(command, chosen.port);
    add_choice(command, "--over", chosen.over, "udp (sockets, the default) or ud (RDMA)");
    command
        .add_option(
            "--packet-bytes", chosen.packet_bytes,
            "bytes per packet without headers (default: what an MTU of 1500, or a datagram, holds)")
        ->check(CLI::Range(packet_bytes_min, packet_bytes_max));
    command.add_option("--chunk", chosen.chunk, "packets sent at once")
        ->check(CLI::Range(1, chunk_max))
        ->capture_default_str();
    auto* const rate = command.add_option_function<std::string>(
        "--rate",
        [&chosen](std::string const& text) {
            auto const parsed = stream::parse_rate(text);
            if (!parsed) throw CLI::ValidationError("--rate", parsed.error().remedy);
            chosen.bits_per_second = *parsed;
        },
        "rate of packets, as 100mbit (the default) or 2.5gbit");
    command
        .add_option("--rate-packets", chosen.packets_per_second,
                    "packets a second, instead of --rate")
        ->check(CLI::Range(1, 1'000'000'000))
        ->excludes(rate);
    auto* const seconds = add_seconds(command, chosen.time, "seconds to send (default: 10)");
    command.add_option("--packets", chosen.packets, "number of packets, instead of a time")
        ->check(CLI::Range(1.0, packets_max))
        ->excludes(seconds);
}

}  // namespace

void add_stream_commands(CommandLine& line) {
    auto* const stream = line.app.add_subcommand(
        "stream", "send paced packets to another machine, which counts them");
    stream->require_subcommand(1);
    auto* const receive =
        line.add(*stream, "receive", "wait for a sender; exit status 0 only when all packets came",
                 [](Options const& options) { return with_stop(options, receive_counted); });
    add_receive_options(*receive, line.options.stream);
    auto* const send = line.add(
        *stream, "send", "send to a waiting receiver; exit status 0 only when all packets came",
        [](Options const& options) { return with_stop(options, send_counted); });
    add_send_options(*send, line.options.stream);
    for (auto* const command : {receive, send}) line.add_output(*command);
}

}  // namespace vfmgr::guest::command
