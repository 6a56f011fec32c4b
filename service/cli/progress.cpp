// SPDX-License-Identifier: Apache-2.0
#include "service/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "service/cli/interruption.hpp"
#include "service/cli/show.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t poll_seconds = 1;  // shows steps as they change

std::size_t terminal_columns() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

// Rewrites one line on a terminal; prints one line per change elsewhere.
class Display {
  public:
    explicit Display(Options const& options)
        : quiet_(options.quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}
    ~Display() { clear(); }
    Display(Display const&) = delete;
    Display& operator=(Display const&) = delete;

    void show(Operation const& operation) {
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

Error failure_of(Operation const& operation) {
    if (operation.problem) return *operation.problem;
    return {Problem::internal, "the operation failed without a reason",
            "see vfmgrd's log: journalctl -u vfmgrd"};
}

}  // namespace

std::vector<std::string> StepChanges::since_last(Operation const& operation) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < operation.steps.size(); ++i) {
        auto const& step = operation.steps[i];
        auto const shown = shown_.find(i);
        if (step.state == StepState::planned ||
            (shown != shown_.end() && shown->second == step.state))
            continue;
        shown_[i] = step.state;
        auto const word = step.state == StepState::intended ? "doing" : enum_name(step.state);
        lines.push_back(fmt::format("{:<7} {}", word, cell(step.sentence)));
        if (step.state != StepState::done) continue;
        for (auto const& remark : step.remarks)
            lines.push_back(fmt::format("{:<7} {}", "", cell(remark)));
    }
    return lines;
}

std::string status_line(Operation const& operation, std::size_t columns) {
    std::size_t done = 0;
    std::string now = cell(operation.state);
    for (auto const& step : operation.steps) {
        if (step.state == StepState::done || step.state == StepState::undone) ++done;
        if (step.state == StepState::intended) now = cell(step.sentence);
    }
    auto line = fmt::format("[{}/{}] {}", done, operation.steps.size(), now);
    if (line.size() <= columns) return line;
    // Do not cut inside a character.
    auto cut = columns;
    while (cut > 0 && (line[cut] & 0xc0) == 0x80) --cut;
    return line.substr(0, cut);
}

Result<Done> follow(Connection const& connection, Options const& options,
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
        VFMGR_TRY(auto operation, value_of<Operation>(*response));
        display.show(operation);
        if (operation.state == OperationState::failed) return fail(failure_of(operation));
        if (finished(operation)) return Done{std::move(operation), response->body};
        wait = std::chrono::seconds(poll_seconds);
    }
}

Result<Settled> settle(Connection const& connection, Options const& options,
                       http::Response const& response) {
    if (response.status != 202) return Settled{};
    VFMGR_TRY(auto const operation, value_of<Operation>(response));
    if (options.no_wait) {
        bool const is_json = options.format == Format::json;
        write_out(is_json ? response.body : operation.id + "\n",
                  is_json ? Shown::json : Shown::text);
        return Settled{.shown = true};
    }
    VFMGR_TRY(auto done, follow(connection, options, operation.id));
    return Settled{.done = std::move(done)};
}

Result<Settled> change(Connection const& connection, Options const& options, ApiRequest request) {
    if (options.dry_run) request.query["dry_run"] = "true";
    VFMGR_TRY(auto const response, connection.send(request));
    if (!options.dry_run) return settle(connection, options, response);
    VFMGR_TRY(auto const planned, value_of<DryRun>(response));
    print(step_table(planned.plan), plan_page(planned.plan), response.body, options);
    return Settled{.shown = true};
}

}  // namespace vfmgr
