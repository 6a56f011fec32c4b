// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/rdma_proof.hpp"
#include "vfmgr/proof/session.hpp"
#include "vfmgr/proof/transfer.hpp"

namespace vfmgr::verify {
namespace {

constexpr StreamSize datagram{.message_bytes = 64, .depth = 1, .pairs = 1};
constexpr StreamSize large{.message_bytes = 64 * 1024, .depth = 128, .pairs = 1};
constexpr StreamSize small{.message_bytes = 8, .depth = 1, .pairs = 1};
constexpr StreamSize both_ways{.message_bytes = 64 * 1024, .depth = 64, .pairs = 2};
constexpr StreamSize many{.message_bytes = 8 * 1024, .depth = 32, .pairs = 8};
constexpr std::chrono::milliseconds deep_window{3000};

constexpr unsigned takes_pings = takes_size | takes_messages;
constexpr unsigned takes_rounds = takes_pings | takes_time;
constexpr unsigned takes_all = takes_rounds | takes_depth | takes_pairs;

// Opens the test's stream and closes it again.
template <auto test>
Result<Measured> on_stream(Measurement const& what, TestBed const& bed) {
    VFMGR_TRY(auto stream, GuestStream::open(bed.host, bed.endpoint, what.kind, what.load.size));
    return test(stream, what.load, bed.deadline);
}

template <ibv_wr_opcode opcode>
Result<Measured> one_way(GuestStream& stream, Load const& load, Deadline deadline) {
    return bandwidth(stream, load, deadline, opcode);
}

Result<Measured> main_memory(Measurement const& what, TestBed const& bed) {
    return transfer(bed.host, bed.endpoint, what.load, bed.deadline);
}

Measurement::Run not_here(char const* detail, char const* remedy) {
    return [=](Measurement const& what, TestBed const&) {
        return measured_skip(what.name, {Problem::unsupported, detail, remedy});
    };
}

// How `vf-guest verify` spells a part of the load, and whether the user chose it.
struct Option {
    LoadPart part;
    char const* name;
    bool chosen;
};

std::array<Option, 5> options_of(Selection const& selection) {
    return {{{takes_size, "--size", selection.message_bytes.has_value()},
             {takes_depth, "--depth", selection.depth.has_value()},
             {takes_pairs, "--queue-pairs", selection.queue_pairs.has_value()},
             {takes_messages, "--messages", selection.messages.has_value()},
             {takes_time, "--seconds", selection.seconds.has_value()}}};
}

std::string names_of(std::vector<Measurement> const& tests, unsigned taking = 0) {
    std::vector<std::string_view> names;
    for (auto const& each : tests)
        if ((each.takes & taking) == taking) names.emplace_back(each.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

Result<void> check_options(std::vector<Measurement> const& all,
                           std::vector<Measurement> const& chosen, Selection const& selection) {
    if (selection.messages && selection.seconds)
        return fail(Problem::invalid_request,
                    "a test runs for a number of messages or for a time, not for both",
                    "use either --messages or --seconds");
    if (selection.profile && !selection.tests.empty())
        return fail(Problem::invalid_request,
                    "--profile chooses the tests, and tests are named already",
                    "name tests, or use --profile");
    for (auto const& [part, option, is_chosen] : options_of(selection)) {
        if (!is_chosen) continue;
        if (selection.tests.empty())
            return fail(Problem::invalid_request,
                        fmt::format("{} changes named tests only, and none is named", option),
                        fmt::format("name tests that take it: {}", names_of(all, part)));
        for (auto const& each : chosen)
            if ((each.takes & part) == 0)
                return fail(Problem::invalid_request,
                            fmt::format("{} takes no {}", each.name, option),
                            fmt::format("leave it out, or run {} by itself; tests that take it: {}",
                                        each.name, names_of(all, part)));
    }
    return {};
}

void set_load(Load& load, Selection const& selection) {
    load.size.message_bytes = selection.message_bytes.value_or(load.size.message_bytes);
    load.size.depth = selection.depth.value_or(load.size.depth);
    load.size.pairs = selection.queue_pairs.value_or(load.size.pairs);
    load.messages = selection.messages.value_or(load.messages);
    if (selection.seconds)
        load.window = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(*selection.seconds));
}

}  // namespace

OwnRuns::OwnRuns()
    : cm_ping(not_here("this program has no RDMA CM client", "use vf-guest")),
      gpudirect(not_here("this program can't test GPUs", "use vf-guest")) {}

Measurement::Run cm_ping_by(CmPinger pinger) {
    return [pinger = std::move(pinger)](Measurement const& what,
                                        TestBed const& bed) -> Result<Measured> {
        auto const bytes = what.load.size.message_bytes;
        auto const offer = bed.host.open({StreamKind::cm_ping, bytes, 1, {}, {}});
        if (!offer) {
            auto const problem = offer.error().problem;
            if (problem != Problem::unsupported && problem != Problem::unavailable)
                return fail(offer.error());
            return measured_skip({}, offer.error());
        }
        auto const& attachment = bed.attachment;
        auto made = pinger({endpoint_options({attachment, bed.ifname}), attachment.responder,
                            offer->cm_port.value_or(0), bytes, what.load.messages},
                           bed.deadline);
        bed.host.close(offer->stream);
        return made;
    };
}

std::vector<Measurement> all_measurements(OwnRuns const& own) {
    using enum StreamKind;
    constexpr auto deep = Profile::deep;
    auto const write = on_stream<one_way<IBV_WR_RDMA_WRITE>>;
    auto const read = on_stream<one_way<IBV_WR_RDMA_READ>>;
    auto const send_only = on_stream<one_way<IBV_WR_SEND>>;
    auto const both = on_stream<verify::bidirectional_bandwidth>;
    return {{"ud_ping", ud_echo, on_stream<verify::ud_ping>, takes_pings, {datagram, 64}},
            {"cm_ping", StreamKind::cm_ping, own.cm_ping, takes_pings, {datagram, 10}},
            {"write_bandwidth", one_sided, write, takes_all, {large}, Profile::default_, Flow::out},
            {"read_bandwidth", one_sided, read, takes_all, {large}, Profile::default_, Flow::in},
            {"send_bandwidth", send, send_only, takes_all, {large}, Profile::default_, Flow::out},
            {"write_latency", write_echo, on_stream<write_latency>, takes_rounds, {small}},
            {"read_latency", one_sided, on_stream<read_latency>, takes_rounds, {small}},
            {"send_latency", send_echo, on_stream<send_latency>, takes_rounds, {small}},
            {"bidirectional_bandwidth", one_sided, both, takes_all, {both_ways}, deep, Flow::both},
            {"many_pairs_bandwidth", one_sided, write, takes_all, {many}, deep, Flow::out},
            {"memory_regions", one_sided, on_stream<memory_regions>, 0, {small}, deep},
            {"transfer", StreamKind::transfer, main_memory, takes_time, {large}, deep},
            {"gpudirect", gpu_transfer, own.gpudirect, takes_time, {large}, deep}};
}

Result<std::vector<Measurement>> select_tests(std::vector<Measurement> all,
                                              Selection const& selection) {
    std::vector<Measurement> chosen;
    for (auto const& name : selection.tests) {
        auto const found = std::ranges::find(all, name, &Measurement::name);
        if (found == all.end())
            return fail(Problem::invalid_request, fmt::format("there is no test {}", name),
                        fmt::format("choose one of {}", names_of(all)));
        set_load(chosen.emplace_back(*found).load, selection);
    }
    VFMGR_CHECK(check_options(all, chosen, selection));
    if (selection.tests.empty())
        return measurements_of(std::move(all), selection.profile.value_or(Profile::default_));
    return chosen;
}

std::vector<Measurement> measurements_of(std::vector<Measurement> all, Profile profile) {
    std::erase_if(all, [&](Measurement const& each) { return each.since > profile; });
    if (profile == Profile::deep)
        for (auto& each : all) each.load.window = deep_window;
    return all;
}

Measured measure(Measurement const& what, TestBed const& bed) {
    auto made = what.run(what, bed);
    if (!made && made.error().problem == Problem::unavailable)
        return measured_skip(what.name, made.error());
    return measured(what.name, std::move(made));
}

}  // namespace vfmgr::verify
