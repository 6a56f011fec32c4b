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

constexpr std::chrono::seconds step_wait{1};  // shows steps as they change
constexpr std::chrono::seconds end_wait{60};  // the longest that the API takes

std::size_t terminal_columns() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

// Rewrites one line on a terminal; silent elsewhere, for logs and scripts.
class Display {
  public:
    explicit Display(Options const& options)
        : shown_(!options.quiet && ::isatty(STDERR_FILENO) == 1) {}
    ~Display() { clear(); }
    Display(Display const&) = delete;
    Display& operator=(Display const&) = delete;

    [[nodiscard]] bool shown() const { return shown_; }
    void show(Operation const& operation) {
        if (!shown_) return;
        auto const line = status_line(operation, terminal_columns() - 1);
        std::fputs(("\r\033[K" + line).c_str(), stderr);
        written_ = true;
    }
    void clear() {
        if (std::exchange(written_, false)) std::fputs("\r\033[K", stderr);
    }

  private:
    bool shown_;
    bool written_ = false;
};

void print_remarks(Operation const& operation, Options const& options) {
    for (auto const& step : operation.steps) {
        if (step.state != StepState::done) continue;
        for (auto const& remark : step.remarks) print_sentence(remark, options);
    }
}

Error failure_of(Operation const& operation) {
    if (operation.problem) return *operation.problem;
    return {Problem::internal, "the operation failed without a reason",
            "see vfmgrd's log: journalctl -u vfmgrd"};
}

// A fleet's answer says below which of its hosts the operation is.
std::string place_of_answer(http::Response const& response) {
    auto const found = response.headers.find("location");
    auto const location = found == response.headers.end() ? std::string() : found->second;
    auto const end = location.find("/operations/");
    return location.starts_with("/v1/hosts/") && end != location.npos ? location.substr(0, end)
                                                                      : std::string();
}

}  // namespace

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
                    std::string const& operation_id, std::optional<Operation> const& known,
                    std::string const& below) {
    auto const path = (below.empty() ? "/v1" : below) + "/operations/" + operation_id;
    auto const resume = below.empty() ? fmt::format("vfctl op wait {}", operation_id)
                                      : fmt::format("vfctl query GET {}?wait=30", path);
    Interruption const interruption(fmt::format(
        "\nvfctl: operation {} continues; wait for it with: {}\n", operation_id, resume));
    Display display(options);
    if (known) display.show(*known);
    auto const next_wait = display.shown() ? step_wait : end_wait;
    // A terminal shows the current state at once.
    auto wait = display.shown() && !known ? std::chrono::seconds(0) : next_wait;
    while (true) {
        auto const response = connection.send({.path = path,
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
        wait = next_wait;
        if (!finished(operation)) continue;
        display.clear();
        print_remarks(operation, options);
        if (operation.state == OperationState::failed) return fail(failure_of(operation));
        return Done{std::move(operation), response->body, below};
    }
}

Result<Settled> settle(Connection const& connection, Options const& options,
                       http::Response const& response) {
    if (response.status != 202) return Settled{};
    VFMGR_TRY(auto const operation, value_of<Operation>(response));
    if (options.no_wait) {
        VFMGR_CHECK(
            print(operation_table({operation}), operation.id + "\n", response.body, options));
        return Settled{.shown = true};
    }
    VFMGR_TRY(auto done,
              follow(connection, options, operation.id, operation, place_of_answer(response)));
    return Settled{.done = std::move(done)};
}

Result<void> check_columns(Options const& options, Table const& shown_after) {
    VFMGR_CHECK(with_columns(options.dry_run   ? step_table({})
                             : options.no_wait ? operation_table({})
                                               : shown_after,
                             options.columns));
    return {};
}

Result<Settled> change(Connection const& connection, Options const& options, ApiRequest request,
                       Table const& shown_after) {
    VFMGR_CHECK(check_columns(options, shown_after));
    if (options.dry_run) request.query["dry_run"] = "true";
    VFMGR_TRY(auto const response, connection.send(request));
    if (!options.dry_run) return settle(connection, options, response);
    VFMGR_TRY(auto const planned, value_of<DryRun>(response));
    VFMGR_CHECK(print(step_table(planned.plan), plan_page(planned.plan), response.body, options));
    return Settled{.shown = true};
}

Result<void> change_and_report(Connection const& connection, Options const& options,
                               ApiRequest request, std::string const& sentence) {
    VFMGR_TRY(auto const settled,
              change(connection, options, std::move(request), operation_table({})));
    if (settled.shown) return {};
    print_sentence(sentence, options);
    return settled.done ? print_done(*settled.done, options) : Result<void>{};
}

Result<void> print_done(Done const& done, Options const& options) {
    return print(operation_table({done.operation}), {}, done.body, options);
}

}  // namespace vfmgr
