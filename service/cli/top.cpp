// SPDX-License-Identifier: Apache-2.0
// Shows what goes through the VFs, and whether their VMs have proved RDMA over them.
#include "service/cli/top.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/interruption.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using Counter = std::optional<std::uint64_t>;

constexpr double interval_seconds_default = 2;
constexpr double interval_seconds_min = 0.2;  // below it the counters' own delays show
constexpr double interval_seconds_max = 3600;
constexpr std::size_t lines_besides_rows = 4;  // the sentence, a blank line, headings, the cursor
constexpr auto clear_screen = "\x1b[H\x1b[2J";

struct TopArguments {
    std::string pf;
    double interval = interval_seconds_default;
    std::uint32_t count = 0;  // 0: until Ctrl-C
};

Counter per_second(Counter const& before, Counter const& after, std::chrono::microseconds passed,
                   std::uint64_t factor = 1) {
    if (!before || !after || *after < *before) return std::nullopt;
    auto const grown = static_cast<double>((*after - *before) * factor);
    return static_cast<std::uint64_t>(
        std::llround(grown * 1e6 / static_cast<double>(passed.count())));
}

Counter sum(Counter const& a, Counter const& b) {
    if (!a && !b) return std::nullopt;
    return a.value_or(0) + b.value_or(0);
}

VfRates rates_of(VfCounters const& before, VfCounters const& after,
                 std::chrono::microseconds passed) {
    constexpr std::uint64_t bits = 8;
    VfRates rates;
    rates.rx_bits = per_second(before.rx_bytes, after.rx_bytes, passed, bits);
    rates.tx_bits = per_second(before.tx_bytes, after.tx_bytes, passed, bits);
    rates.rx_packets = per_second(before.rx_packets, after.rx_packets, passed);
    rates.tx_packets = per_second(before.tx_packets, after.tx_packets, passed);
    rates.dropped = sum(per_second(before.rx_dropped, after.rx_dropped, passed),
                        per_second(before.tx_dropped, after.tx_dropped, passed));
    return rates;
}

std::uint64_t traffic(VfRates const& rates) {
    return rates.rx_bits.value_or(0) + rates.tx_bits.value_or(0);
}

std::string mbits(Counter const& bits) {
    return bits ? fmt::format("{:.1f}", static_cast<double>(*bits) / 1e6) : "-";
}

// What one update is made from.
struct Sample {
    std::vector<PfTraffic> traffic;
    std::vector<VfView> vfs;
    std::vector<Attachment> attachments;
};

class Top {
  public:
    // `filter`: query parameters that choose the VFs.
    Top(Connection const& connection, Options const& options,
        std::map<std::string, std::string> filter)
        : connection_(connection), options_(options), filter_(std::move(filter)) {}

    // Ends with an Error, by Ctrl-C, or after `count` updates. On a screen it waits for a daemon
    // that restarts; a script that reads it is told at once.
    Result<void> run(std::chrono::milliseconds interval, std::uint32_t count) {
        Interruption const interruption("\n");
        VFMGR_TRY(auto before, listed<PfTraffic>("/v1/host/traffic", filter_));
        for (std::uint32_t updates = 0; count == 0 || updates < count;) {
            // A time; no event announces its end.
            ::poll(nullptr, 0, static_cast<int>(interval.count()));
            auto now = sample();
            if (!now && on_screen_ && now.error().problem == Problem::unavailable) {
                write_out(fmt::format("{}{}; trying again\n", clear_screen,
                                      printable(now.error().detail)),
                          Shown::text);
            } else {
                VFMGR_CHECK(now);
                VFMGR_CHECK(show(before, *now, updates++));
                before = std::move(now->traffic);
            }
            VFMGR_CHECK(flush_output());
        }
        return {};
    }

  private:
    template <class T>
    [[nodiscard]] Result<std::vector<T>> listed(
        std::string path, std::map<std::string, std::string> const& query) const {
        VFMGR_TRY(auto const response, connection_.list({.path = std::move(path), .query = query}));
        VFMGR_TRY(auto list, value_of<ItemList<T>>(response));
        return std::move(list.items);
    }

    [[nodiscard]] Result<Sample> sample() const {
        Sample now;
        VFMGR_TRY(now.traffic, listed<PfTraffic>("/v1/host/traffic", filter_));
        VFMGR_TRY(now.vfs, listed<VfView>("/v1/vfs", filter_));
        VFMGR_TRY(now.attachments, listed<Attachment>("/v1/attachments", {}));
        return now;
    }

    [[nodiscard]] Result<void> show(std::vector<PfTraffic> const& before, Sample const& now,
                                    std::uint32_t updates) const {
        auto rows = top_rows(now.vfs, now.attachments, rates_between(before, now.traffic));
        std::vector<std::string> unread;
        for (auto const& pf : now.traffic)
            if (pf.problem)
                unread.push_back(fmt::format("{}: {}", to_string(pf.pf), pf.problem->detail));
        if (on_screen_) return draw(rows, unread);
        for (auto const& sentence : unread) print_sentence(sentence, options_);
        if (updates > 0 && options_.format == Format::yaml) write_out("---\n", Shown::yaml);
        auto const read_at = now.traffic.empty() ? Time{} : now.traffic.front().read_at;
        return print(top_table(rows), top_document(rows, read_at), options_);
    }

    // Replaces the screen; rows that do not fit are left out. `unread`: why PFs can't be read.
    [[nodiscard]] Result<void> draw(std::vector<TopRow>& rows,
                                    std::vector<std::string> const& unread) const {
        auto const have =
            std::ranges::count_if(rows, [](TopRow const& row) { return row.vf.vm.has_value(); });
        auto const proved = std::ranges::count(rows, Verdict::pass, &TopRow::verdict);
        auto const besides = lines_besides_rows + unread.size();
        winsize window{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > besides &&
            rows.size() > window.ws_row - besides)
            rows.resize(window.ws_row - besides);
        VFMGR_TRY(auto const table, with_columns(top_table(rows), options_.columns));
        auto text = fmt::format("{}{} VFs have a VM, {} of them have passed their verification\n\n",
                                clear_screen, have, proved) +
                    as_table(table, options_.no_headers ? Headers::hidden : Headers::shown);
        for (auto const& sentence : unread) text += printable(sentence) + "\n";
        write_out(text, Shown::text);
        return {};
    }

    Connection const& connection_;
    Options const& options_;
    std::map<std::string, std::string> filter_;
    bool on_screen_ = options_.format == Format::table && ::isatty(STDOUT_FILENO) == 1;
};

Result<void> top(Options const& options, TopArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(with_columns(top_table({}), options.columns));
    VFMGR_TRY(auto const connection, Connection::open(options));
    std::map<std::string, std::string> filter;
    if (!arguments.pf.empty()) {
        VFMGR_TRY(auto const pci, resolve_pf(connection, arguments.pf));
        filter["pf"] = to_string(pci);
    }
    auto const interval = std::chrono::duration<double>(arguments.interval);
    return Top(connection, options, std::move(filter))
        .run(std::chrono::round<std::chrono::milliseconds>(interval), arguments.count);
}

}  // namespace

std::map<VfId, VfRates> rates_between(std::vector<PfTraffic> const& before,
                                      std::vector<PfTraffic> const& after) {
    std::map<VfId, VfRates> rates;
    for (auto const& now : after) {
        auto const then = std::ranges::find(before, now.pf, &PfTraffic::pf);
        if (then == before.end() || now.read_at <= then->read_at) continue;
        auto const passed =
            std::chrono::duration_cast<std::chrono::microseconds>(now.read_at - then->read_at);
        for (auto const& [index, counters] : now.vfs) {
            auto const had = std::ranges::find(then->vfs, index, &VfTraffic::index);
            if (had != then->vfs.end())
                rates[{now.pf, index}] = rates_of(had->counters, counters, passed);
        }
    }
    return rates;
}

std::vector<TopRow> top_rows(std::vector<VfView> const& vfs,
                             std::vector<Attachment> const& attachments,
                             std::map<VfId, VfRates> const& rates) {
    std::vector<TopRow> rows;
    for (auto const& vf : vfs) {
        auto const rate = rates.find(id_of(vf));
        if (!vf.vm && (rate == rates.end() || traffic(rate->second) == 0)) continue;
        TopRow row{vf};
        auto const has = std::ranges::find(attachments, vf.attachment.value_or(""),
                                           [](Attachment const& one) { return one.id; });
        if (has != attachments.end() && has->verification) row.verdict = has->verification->verdict;
        if (rate != rates.end()) row.rates = rate->second;
        rows.push_back(std::move(row));
    }
    std::ranges::sort(rows, [](TopRow const& a, TopRow const& b) {
        auto const through_a = traffic(a.rates), through_b = traffic(b.rates);
        return through_a != through_b ? through_a > through_b : id_of(a.vf) < id_of(b.vf);
    });
    return rows;
}

Table top_table(std::vector<TopRow> const& rows) {
    Table table{{"VF", "VM", "VERDICT", "RX MBIT/S", "TX MBIT/S", "RX PACKETS/S", "TX PACKETS/S",
                 "DROPPED/S", "STATE"},
                {}};
    for (auto const& [view, verdict, rates] : rows)
        table.rows.push_back({to_string(id_of(view)), cell(view.vm), cell(verdict),
                              mbits(rates.rx_bits), mbits(rates.tx_bits), cell(rates.rx_packets),
                              cell(rates.tx_packets), cell(rates.dropped), cell(view.state)});
    return table;
}

std::string top_document(std::vector<TopRow> const& rows, Time read_at) {
    auto items = nlohmann::ordered_json::array();
    auto const value = [](auto const& known) {
        return known ? nlohmann::ordered_json(*known) : nlohmann::ordered_json(nullptr);
    };
    for (auto const& [view, verdict, rates] : rows) {
        nlohmann::ordered_json item;
        item["vf"] = to_string(id_of(view));
        item["vm"] = value(view.vm);
        item["attachment"] = value(view.attachment);
        item["state"] = enum_name(view.state);
        item["verdict"] = verdict ? nlohmann::ordered_json(enum_name(*verdict)) : nullptr;
        item["rx_bits_per_second"] = value(rates.rx_bits);
        item["tx_bits_per_second"] = value(rates.tx_bits);
        item["rx_packets_per_second"] = value(rates.rx_packets);
        item["tx_packets_per_second"] = value(rates.tx_packets);
        item["dropped_per_second"] = value(rates.dropped);
        items.push_back(std::move(item));
    }
    nlohmann::ordered_json const document{{"items", std::move(items)},
                                          {"read_at", to_rfc3339(read_at)}};
    return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void add_top_command(CLI::App& app, Session& session) {
    auto const [command, arguments] = add_command(
        app, session, "top", "show the traffic of VFs and their VMs' verdicts, again and again",
        top, TopArguments{});
    command->add_option("--pf", arguments.pf, "only VFs of this PF")->type_name("PF");
    command->add_option("--interval", arguments.interval, "seconds between two updates")
        ->check(CLI::Range(interval_seconds_min, interval_seconds_max))
        ->capture_default_str();
    command->add_option("--count", arguments.count, "end after so many updates");
}

}  // namespace vfmgr
