// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/cli/stream.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/os/socket_address.hpp"
#include "guest-tools/cli/report.hpp"
#include "guest-tools/cli/verify.hpp"
#include "guest-tools/gpu/gpu_ring.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/text.hpp"

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

// Returns the netdev that has the address; empty where none does.
std::string netdev_of(IpAddress const& address) {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return {};
    std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> const owner(all, &::freeifaddrs);
    for (auto const* one = all; one != nullptr; one = one->ifa_next) {
        auto const family = one->ifa_addr != nullptr ? one->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6) continue;
        SocketAddress its;
        std::memcpy(its.room(), one->ifa_addr,
                    family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        if (its.address() == address) return one->ifa_name;
    }
    return {};
}

Result<std::unique_ptr<gpu::GpuRings>> open_rings(Options const& options, IpAddress const& local) {
    auto const facts = gpu::collect_facts({});
    auto const machine = checks::read_machine(facts);
    VFMGR_TRY(auto found, gpu::find_gpus(machine));
    std::optional<PciAddress> selection;
    if (!options.stream.gpu.empty()) {
        VFMGR_TRY(selection, PciAddress::parse(options.stream.gpu));
    }
    gpu::measure_from(machine, netdev_of(local), found.infos);
    VFMGR_TRY(auto const at, gpu::choose_gpu(found.infos, selection));
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
    chosen.rings = rings->get();
    if (options.output == Output::text)
        print_line(fmt::format("will receive into the memory of GPU {}, {}",
                               to_string((*rings)->gpu().pci), (*rings)->gpu().name));
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

}  // namespace

int receive_stream(Options const& options) {
    return with_stop(options, receive_counted);
}

int send_stream(Options const& options) {
    return with_stop(options, send_counted);
}

namespace {

constexpr double seconds_max = 30.0 * 86'400;
constexpr double packets_max = 1e14;
// These are ints: each other type of check adds another instance of CLI11's templates.
constexpr int packet_bytes_min = stream::packet_bytes_min;
constexpr int packet_bytes_max = 65'507;  // of UDP over IPv4; ud checks what fits itself
constexpr int chunk_max = stream::chunk_max;

std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(seconds));
}

stream::Over over_of(std::string const& text) {
    auto const over = enum_value<stream::Over>(text);
    if (!over)
        throw CLI::ValidationError("--over", "must be one of " + enum_choices<stream::Over>());
    return *over;
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
    command.add_option_function<std::string>(
        "--over", [&chosen](std::string const& text) { chosen.over = over_of(text); },
        "udp or ud (default: what the sender asks for)");
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
    auto* const memory = command.add_option_function<std::string>(
        "--memory",
        [&options](std::string const& text) {
            auto const memory_of = enum_value<stream::Memory>(text);
            if (!memory_of)
                throw CLI::ValidationError("--memory",
                                           "must be one of " + enum_choices<stream::Memory>());
            options.memory = *memory_of;
        },
        "memory of the ring: host (the default) or gpu");
    command.add_option("--gpu", options.gpu, "PCI address (default: the GPU nearest to --local)")
        ->needs(memory);
    command
        .add_option_function<double>(
            "--seconds", [&chosen](double seconds) { chosen.time = milliseconds(seconds); },
            "seconds at most, including the wait for a sender (default: no limit)")
        ->check(CLI::Range(0.1, seconds_max));
}

void add_send_options(CLI::App& command, StreamOptions& options) {
    auto& chosen = options.send;
    command.add_option("--to", options.to, "the receiver's --local address")->required();
    command.add_option("--local", options.local, "address here to send from");
    add_port(command, chosen.port);
    command.add_option_function<std::string>(
        "--over", [&chosen](std::string const& text) { chosen.over = over_of(text); },
        "udp (sockets, the default) or ud (RDMA)");
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
    auto* const seconds =
        command
            .add_option_function<double>(
                "--seconds", [&chosen](double time) { chosen.time = milliseconds(time); },
                "seconds to send (default: 10)")
            ->check(CLI::Range(0.1, seconds_max));
    command.add_option("--packets", chosen.packets, "number of packets, instead of a time")
        ->check(CLI::Range(1.0, packets_max))
        ->excludes(seconds);
}

}  // namespace

StreamCommands::StreamCommands(CLI::App& app, StreamOptions& options)
    : stream(
          app.add_subcommand("stream", "send paced packets to another machine, which counts them")),
      receive(stream->add_subcommand(
          "receive", "wait for a sender; exit status 0 only when all packets came")),
      send(stream->add_subcommand(
          "send", "send to a waiting receiver; exit status 0 only when all packets came")) {
    stream->require_subcommand(1);
    add_receive_options(*receive, options);
    add_send_options(*send, options);
}

std::optional<int> StreamCommands::run(Options const& options) const {
    if (receive->parsed()) return receive_stream(options);
    if (send->parsed()) return send_stream(options);
    return std::nullopt;
}

}  // namespace vfmgr::guest::command
