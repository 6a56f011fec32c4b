// SPDX-License-Identifier: Apache-2.0
// Follows the stream of events, over broken connections and restarts of vfmgrd.
#include "service/cli/events.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "api/http/sse.hpp"
#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/interruption.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"
#include "service/cli/yaml.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr auto silence_max = 45s;  // three heartbeats
constexpr auto pause_max = 30s;
// The stream has no end, so columns get their widths before their cells are known.
constexpr std::pair<std::string_view, std::size_t> widths[] = {
    {"EVENT", 7}, {"AT", 24}, {"KIND", 20}, {"PF", 12}, {"VF", 3}, {"VM", 12}, {"ATTACHMENT", 10}};

struct EventArguments {
    std::string pf, vm, attachment, network, pool, reservation, tenant;
    std::vector<std::string> kinds;
    std::optional<std::uint64_t> after;
};

std::string table_line(std::vector<std::string> const& columns,
                       std::vector<std::string> const& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        auto const* const column =
            std::ranges::find(widths, columns[i], [](auto const& one) { return one.first; });
        line += fmt::format("{:<{}}  ", cells[i], column == std::end(widths) ? 0 : column->second);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

bool is_not_found(Error const& error) {
    return error.problem == Problem::not_found;
}

class Follower {
  public:
    Follower(Connection const& connection, Options const& options, ApiRequest request)
        : connection_(connection),
          options_(options),
          printer_(options),
          request_(std::move(request)) {
        request_.path = "/v1/events";
        request_.headers["accept"] = "text/event-stream";
        request_.timeout = silence_max;
    }

    // Ends only with an Error, or by Ctrl-C.
    Result<void> run() {
        while (true) {
            http::SseParser parser;
            auto const ended = connection_.follow(
                request_, [&](std::string_view part) { return take(parser, part); });
            if (failure_) return fail(std::move(*failure_));
            if (ended && ended->status / 100 != 2) {
                auto error = problem_of(*ended);
                if (!connected_ || error.problem != Problem::unavailable)
                    return fail(std::move(error));
                rest(error.detail);
            } else if (ended) {
                rest("vfmgrd ended the stream");
            } else if (connected_) {
                rest(ended.error().detail);
            } else {
                return fail(ended.error());
            }
        }
    }

  private:
    // False: nothing more can be printed.
    bool take(http::SseParser& parser, std::string_view part) {
        connected_ = true;
        pause_ = 1s;
        bool const fits =
            parser.feed(part, [this](http::SentEvent const& event) { print_event(event); });
        if (!fits)
            failure_ = {Problem::internal, "an event is longer than any that vfmgrd sends",
                        "check that this is vfmgrd, and that its version matches vfctl's"};
        if (auto const written = flush_output(); !written) failure_ = written.error();
        if (!parser.last_id().empty()) resume_after(parser.last_id());
        return !failure_;
    }
    void print_event(http::SentEvent const& event) {
        if (event.name.empty())
            return write_out(printer_.text_of(event.data),
                             options_.format == Format::json   ? Shown::json
                             : options_.format == Format::yaml ? Shown::yaml
                                                               : Shown::text);
        if (event.name == "current")
            print_sentence(fmt::format("following events after event {}", event.id), options_);
        if (event.name == "resync")
            print_sentence(fmt::format("some events are no longer kept: list again what you "
                                       "follow; events after event {} follow",
                                       event.id),
                           options_);
    }
    void resume_after(std::string const& id) {
        request_.headers["last-event-id"] = id;
        interruption_.set_farewell(
            fmt::format("\nvfctl: to go on from here: vfctl events --after {}\n", id));
    }
    void rest(std::string const& why) {
        print_sentence(fmt::format("{}; connecting again in {} s", why, pause_.count()), options_);
        // A time; no event announces its end.
        ::poll(nullptr, 0, static_cast<int>(std::chrono::milliseconds(pause_).count()));
        pause_ = std::min<std::chrono::seconds>(2 * pause_, pause_max);
    }

    Connection const& connection_;
    Options const& options_;
    EventPrinter printer_;
    ApiRequest request_;
    Interruption interruption_{"\n"};
    bool connected_ = false;  // once at least
    std::chrono::seconds pause_{1};
    std::optional<Error> failure_;
};

Result<void> follow_events(Options const& options, EventArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(with_columns(event_table({}), options.columns));
    VFMGR_TRY(auto const connection, Connection::open(options));
    ApiRequest request;
    if (!arguments.pf.empty()) {
        VFMGR_TRY(auto const pci, resolve_pf(connection, arguments.pf));
        request.query["pf"] = to_string(pci);
    }
    if (!arguments.vm.empty()) request.query["vm"] = arguments.vm;
    if (!arguments.attachment.empty()) {
        // One that has ended has no other name than its id.
        auto const id = resolve_attachment(connection, arguments.attachment);
        if (!id && !is_not_found(id.error())) return fail(id.error());
        request.query["attachment"] = id.value_or(arguments.attachment);
    }
    if (!arguments.network.empty()) request.query["network"] = arguments.network;
    if (!arguments.pool.empty()) request.query["pool"] = arguments.pool;
    if (!arguments.reservation.empty()) request.query["reservation"] = arguments.reservation;
    if (!arguments.tenant.empty()) request.query["tenant"] = arguments.tenant;
    if (!arguments.kinds.empty())
        request.query["kind"] = fmt::format("{}", fmt::join(arguments.kinds, ","));
    if (arguments.after) request.query["after"] = std::to_string(*arguments.after);
    return Follower(connection, options, std::move(request)).run();
}

}  // namespace

std::string EventPrinter::text_of(std::string const& json) {
    if (options_.format == Format::json) return json + "\n";
    if (options_.format == Format::yaml)
        return as_yaml(json)
            .map([](std::string const& text) { return "---\n" + text; })
            .value_or(json + "\n");
    auto const document = parse_json(json);
    auto const event = document ? from_json_document<Event>(*document, UnknownKeys::ignored)
                                : fail(document.error());
    if (!event) return json + "\n";
    auto const table = with_columns(event_table(*event), options_.columns);
    if (!table) return json + "\n";
    bool const headers = std::exchange(headers_, false) && !options_.no_headers;
    if (options_.format != Format::table) {
        auto shown = options_;
        shown.no_headers = !headers;
        return rendered(*table, json, shown).value_or(json + "\n");
    }
    return (headers ? table_line(table->columns, table->columns) : "") +
           table_line(table->columns, table->rows.front());
}

void add_events_command(CLI::App& app, Session& session) {
    auto const [command, arguments] =
        add_command(app, session, "events", "print what changes on this host, as it changes",
                    follow_events, EventArguments{});
    command->add_option("--pf", arguments.pf, "only events of this PF and its VFs")
        ->type_name("PF");
    command->add_option("--vm", arguments.vm, "only events of this VM, by name or UUID")
        ->type_name("VM");
    command
        ->add_option("--attachment", arguments.attachment,
                     "only events of this attachment: its ID, its VF, or the VM that has it")
        ->type_name("ATTACHMENT");
    command->add_option("--network", arguments.network, "only changes of this network")
        ->type_name("NETWORK");
    command->add_option("--pool", arguments.pool, "only changes of this pool")->type_name("POOL");
    command->add_option("--reservation", arguments.reservation, "only changes of this reservation")
        ->type_name("RESERVATION");
    command->add_option("--tenant", arguments.tenant, "only changes of this tenant")
        ->type_name("TENANT");
    command
        ->add_option("--kind", arguments.kinds,
                     "only events of these kinds, such as attached,detached")
        ->expected(1)
        ->take_all()
        ->delimiter(',')
        ->check(one_of<EventKind>());
    command->add_option("--after", arguments.after, "begin after the event with this number");
}

}  // namespace vfmgr
