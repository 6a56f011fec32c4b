// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/stream_commands.hpp"

#include "guest-tools/stream/packet.hpp"

namespace vfmgr::guest::command {
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
