// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {
namespace {

using Labels = std::vector<std::pair<char const*, std::string>>;

std::string escaped(std::string_view value) {
    std::string text;
    for (char const letter : value) {
        if (letter == '\n')
            text += "\\n";
        else if (letter == '\\' || letter == '"')
            text += {'\\', letter};
        else
            text += letter;
    }
    return text;
}

std::string label_text(Labels const& labels) {
    std::string text;
    for (auto const& [name, value] : labels)
        text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
    return text;
}

Labels operator+(Labels labels, Labels const& more) {
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
}

// All series of one name. `name` includes the unit; `type` is as in a TYPE line.
class Family {
  public:
    Family(char const* name, char const* help, char const* type = "gauge")
        : name_(name), help_(help), type_(type) {}

    // Keeps the first of several series with the same labels.
    void set(Labels const& labels, double value, char const* suffix = "") {
        series_.emplace(series(labels, suffix), value);
    }
    void add(Labels const& labels, double value) { series_[series(labels, "")] += value; }

    // Empty without a series.
    [[nodiscard]] std::string text() const {
        if (series_.empty()) return {};
        auto text = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help_, type_);
        for (auto const& [series, value] : series_) text += fmt::format("{} {}\n", series, value);
        return text;
    }

  private:
    [[nodiscard]] std::string series(Labels const& labels, char const* suffix) const {
        return fmt::format("{}{}{{{}}}", name_, suffix, label_text(labels));
    }
    char const* name_;
    char const* help_;
    char const* type_;
    std::map<std::string, double> series_;
};

Labels vf_labels(std::string const& attachment, std::string const& ifname,
                 std::string const& rdma_device) {
    return {{"attachment", attachment}, {"ifname", ifname}, {"rdma_device", rdma_device}};
}

Labels vf_labels(VfReport const& report) {
    return vf_labels(report.verification.attachment, report.ifname, report.rdma_device);
}

double in_seconds(std::chrono::system_clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

// A test's figure, exported as a metric of its own: its value, multiplied and divided by these.
// Both conversions are exact where the figure is: x * 0.000001 is not x / 1000000.
struct Converted {
    char const* figure;
    double times, divisor;
    char const* name;
    char const* help;
};
constexpr std::array converted_figures{
    Converted{"bandwidth_mbps", 125'000, 1, "vf_guest_test_bandwidth_bytes_per_second",
              "Payload bandwidth of a test."},
    Converted{"achieved_percent", 1, 100, "vf_guest_test_achieved_ratio",
              "Bandwidth of a test divided by what the path can carry."},
    Converted{"lost", 1, 1, "vf_guest_test_lost_messages", "Datagrams that got no answer."},
    Converted{"messages_per_s", 1, 1, "vf_guest_test_messages_per_second",
              "Rate of completed messages of a test."},
    Converted{"round_trip_min_us", 1, 1'000'000, "vf_guest_test_round_trip_min_seconds",
              "Shortest round trip of a test."},
    Converted{"mtu_bytes", 1, 1, "vf_guest_test_mtu_bytes", "MTU that a test proved."},
    Converted{"largest_mtu_bytes", 1, 1, "vf_guest_test_largest_mtu_bytes",
              "Largest MTU that still passed."}};

struct Quantile {
    char const* figure;
    char const* quantile;
};
constexpr std::array<Quantile, 6> quantiles{{{"min_us", "0"},
                                             {"p50_us", "0.5"},
                                             {"p90_us", "0.9"},
                                             {"p99_us", "0.99"},
                                             {"p999_us", "0.999"},
                                             {"max_us", "1"}}};

std::string test_texts(std::vector<VfReport> const& reports) {
    Family verdicts("vf_guest_test_verdict",
                    "The verdict of each test of the last verification; always 1.");
    Family checked("vf_guest_test_checked_bytes", "Bytes of a test that were compared.");
    Family wrong("vf_guest_test_mismatched_bytes", "Bytes of a test that differed, at the least.");
    Family latency("vf_guest_test_latency_seconds",
                   "Latency of messages: half a round trip; for reads and datagrams the whole.",
                   "summary");
    std::vector<Family> converted;
    for (auto const& each : converted_figures) converted.emplace_back(each.name, each.help);
    for (auto const& report : reports) {
        for (auto const& test : report.verification.tests) {
            auto const labels = vf_labels(report) + Labels{{"test", test.name}};
            verdicts.set(labels + Labels{{"verdict", std::string(enum_name(test.verdict))}}, 1);
            checked.set(labels, static_cast<double>(test.bytes_checked));
            wrong.set(labels, static_cast<double>(test.mismatches));
            auto const figure = [&](char const* name) {
                auto const found = test.figures.find(name);
                return found == test.figures.end() ? nullptr : &found->second;
            };
            for (auto const& each : quantiles)
                if (auto const* value = figure(each.figure))
                    latency.set(labels + Labels{{"quantile", each.quantile}}, *value / 1'000'000);
            if (auto const* samples = figure("samples")) latency.set(labels, *samples, "_count");
            for (std::size_t n = 0; n < converted.size(); ++n) {
                auto const& [name, times, divisor, metric, help] = converted_figures[n];
                if (auto const* value = figure(name))
                    converted[n].set(labels, *value * times / divisor);
            }
        }
    }
    auto text = verdicts.text() + checked.text() + wrong.text() + latency.text();
    for (auto const& each : converted) text += each.text();
    return text;
}

std::string verification_texts(std::vector<VfReport> const& reports) {
    Family pass("vf_guest_verification_pass", "1 when the last verification passed, otherwise 0.");
    Family when("vf_guest_verification_timestamp_seconds",
                "When the last verification ended, or when it started if its end is unknown.");
    Family took("vf_guest_verification_duration_seconds", "How long the last verification took.");
    Family together("vf_guest_verification_at_once",
                    "Attachments that were verified at the same time, this one among them.");
    Family lost("vf_guest_verification_lost_packets",
                "Packets lost during the last verification, by the counter that grew.");
    Family warnings("vf_guest_verification_warnings", "Warnings of the last verification.");
    for (auto const& report : reports) {
        auto const& verification = report.verification;
        auto const labels = vf_labels(report);
        pass.set(labels, verification.verdict == Verdict::pass ? 1 : 0);
        auto const end = verification.finished_at.value_or(verification.started_at);
        when.set(labels, in_seconds(end.time_since_epoch()));
        if (verification.finished_at) took.set(labels, in_seconds(end - verification.started_at));
        warnings.set(labels, static_cast<double>(verification.warnings.size()));
        together.set(labels, static_cast<double>(report.at_once_with.size()) + 1);
        for (auto const& loss : verification.losses)
            lost.add(labels + Labels{{"side", std::string(enum_name(loss.side))},
                                     {"source", std::string(enum_name(loss.counter.source))},
                                     {"device", loss.counter.device},
                                     {"counter", loss.counter.name}},
                     static_cast<double>(loss.counter.count));
    }
    return pass.text() + when.text() + took.text() + together.text() + warnings.text() +
           lost.text();
}

}  // namespace

std::string metrics_text(std::string_view version, std::vector<Configured> const& configured,
                         std::vector<VfReport> const& reports) {
    Family info("vf_guest_info", "Which vf-guest wrote this; always 1.");
    info.set({{"version", std::string(version)}}, 1);
    Family complete("vf_guest_configured",
                    "1 when the VF is configured as the host requests, 0 when that only started.");
    for (auto const& one : configured)
        complete.set(vf_labels(one.attachment, one.ifname, one.rdma_device), one.complete ? 1 : 0);
    return info.text() + complete.text() + verification_texts(reports) + test_texts(reports);
}

}  // namespace vfmgr::guest
