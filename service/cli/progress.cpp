// SPDX-License-Identifier: Apache-2.0
#include "service/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "service/cli/interruption.hpp"
#include "service/cli/show.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t poll_seconds = 1;  // shows steps as they change

bool ended(nlohmann::json const& operation) {
    auto const state = cell(operation, "/state");
    return state == "succeeded" || state == "failed";
}

std::size_t terminal_columns() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

nlohmann::json list_in(nlohmann::json const& document, char const* name) {
    auto const found = document.find(name);
    return found != document.end() && found->is_array() ? *found : nlohmann::json::array();
}

// Rewrites one line on a terminal; prints one line per change elsewhere.
class Display {
  public:
    explicit Display(Options const& options)
        : quiet_(options.quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}
    ~Display() { clear(); }
    Display(Display const&) = delete;
    Display& operator=(Display const&) = delete;

    void show(nlohmann::json const& operation) {
        if (quiet_) return;
        if (terminal_) {
            auto const line = status_line(operation, terminal_columns() - 1);
            std::fputs(("\r\033[K" + line).c_str(), stderr);
            written_ = true;
            return;
        }
        for (auto const& line : changes_.since_last(operation))
            std::fputs((line + "\n").c_str(), stderr);
    }

  private:
    void clear() {
        if (std::exchange(written_, false)) std::fputs("\r\033[K", stderr);
    }

    bool quiet_;
    bool terminal_;
    bool written_ = false;
    StepChanges changes_;
};

Error failure_of(nlohmann::json const& operation) {
    auto const problem = operation.find("problem");
    if (problem != operation.end() && problem->is_object()) return error_from_json(*problem);
    return {Problem::internal, "the operation failed without a reason",
            "see vfmgrd's log: journalctl -u vfmgrd"};
}

}  // namespace

std::vector<std::string> StepChanges::since_last(nlohmann::json const& operation) {
    std::vector<std::string> lines;
    auto const steps = list_in(operation, "steps");
    for (std::size_t i = 0; i < steps.size(); ++i) {
        auto const state = cell(steps[i], "/state");
        if (state == "planned" || shown_[i] == state) continue;
        shown_[i] = state;
        auto const word = state == "intended" ? std::string("doing") : state;
        lines.push_back(fmt::format("{:<7} {}", word, cell(steps[i], "/sentence")));
        if (state != "done") continue;
        for (auto const& remark : list_in(steps[i], "remarks"))
            lines.push_back(fmt::format("{:<7} {}", "", cell(remark)));
    }
    return lines;
}

std::string status_line(nlohmann::json const& operation, std::size_t columns) {
    auto const steps = list_in(operation, "steps");
    std::size_t done = 0;
    std::string now = cell(operation, "/state");
    for (auto const& step : steps) {
        auto const state = cell(step, "/state");
        if (state == "done" || state == "undone") ++done;
        if (state == "intended") now = cell(step, "/sentence");
    }
    auto line = fmt::format("[{}/{}] {}", done, steps.size(), now);
    if (line.size() <= columns) return line;
    // Do not cut inside a character.
    auto cut = columns;
    while (cut > 0 && (line[cut] & 0xc0) == 0x80) --cut;
    return line.substr(0, cut);
}

Result<nlohmann::json> follow(Connection const& connection, Options const& options,
                              std::string const& operation_id) {
    auto const resume = fmt::format("vfctl op wait {}", operation_id);
    Interruption const interruption(fmt::format(
        "\nvfctl: operation {} continues; wait for it with: {}\n", operation_id, resume));
    Display display(options);
    auto wait = std::chrono::seconds(0);  // shows the current state at once
    while (true) {
        auto const response = connection.send({.path = "/v1/operations/" + operation_id,
                                               .query = {{"wait", std::to_string(wait.count())}},
                                               .timeout = wait + std::chrono::seconds(30)});
        if (!response) {
            Error error = response.error();
            if (error.problem == Problem::unavailable || error.problem == Problem::timed_out)
                error.remedy += fmt::format("; then wait for the operation with: {}", resume);
            return fail(std::move(error));
        }
        VFMGR_TRY(auto operation, json_of(*response));
        display.show(operation);
        if (ended(operation)) {
            if (cell(operation, "/state") == "failed") return fail(failure_of(operation));
            return operation;
        }
        wait = std::chrono::seconds(poll_seconds);
    }
}

Result<std::optional<nlohmann::json>> settle(Connection const& connection, Options const& options,
                                             http::Response const& response) {
    if (response.status != 202) return std::optional<nlohmann::json>(nlohmann::json(nullptr));
    VFMGR_TRY(auto const operation, json_of(response));
    auto const id = cell(operation, "/id");
    if (options.no_wait) {
        bool const is_json = options.format == Format::json;
        write_out(is_json ? response.body : id + "\n", is_json ? Shown::json : Shown::text);
        return std::optional<nlohmann::json>();
    }
    VFMGR_TRY(auto done, follow(connection, options, id));
    return std::optional<nlohmann::json>(std::move(done));
}

Result<std::optional<nlohmann::json>> change(Connection const& connection, Options const& options,
                                             ApiRequest request) {
    if (options.dry_run) request.query["dry_run"] = "true";
    VFMGR_TRY(auto const response, connection.send(request));
    nlohmann::json body;
    if (!response.body.empty()) {
        VFMGR_TRY(body, json_of(response));
    }
    if (!options.dry_run) return settle(connection, options, response);
    print(step_table(body.value("plan", nlohmann::json::object())), plan_page(body), response.body,
          options);
    return std::optional<nlohmann::json>();
}

}  // namespace vfmgr
