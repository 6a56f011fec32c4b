// SPDX-License-Identifier: Apache-2.0
// Firmware settings of ConnectX cards: shows them, changes them on several cards with one plan, and
// does the single reboot afterwards.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/drained.hpp"
#include "service/cli/firmware_words.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/machine/command.hpp"

namespace vfmgr {
namespace {

constexpr auto all_cards = "/v1/host/firmware";
constexpr std::chrono::seconds firmware_time_max{90};
constexpr std::chrono::seconds reboot_time_max{30};

std::string firmware_path(std::string const& card) {
    return "/v1/pfs/" + card + "/firmware";
}

Result<http::Response> read_firmware_at(Connection const& connection, std::string const& path) {
    return connection.send({.path = path, .timeout = firmware_time_max});
}

Result<void> list_firmware(Options const& options) {
    return print_list<FirmwareView>(options, {.path = all_cards, .timeout = firmware_time_max},
                                    card_table);
}

Result<void> show_firmware(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, name));
    VFMGR_TRY(auto const response, read_firmware_at(connection, firmware_path(to_string(pci))));
    return print_answer<FirmwareView>(
        response, options, [](FirmwareView const& view) { return setting_table(view.card); },
        card_page);
}

Result<std::vector<FirmwareView>> read_all_firmware(Connection const& connection) {
    VFMGR_TRY(auto const response,
              connection.list({.path = all_cards, .timeout = firmware_time_max}));
    VFMGR_TRY(auto list, value_of<ItemList<FirmwareView>>(response));
    return std::move(list.items);
}

// Returns the cards of the given PFs, each once. A PF that belongs to no card stands for itself:
// the API reports why it can't be changed.
Result<std::vector<std::string>> cards_of(Connection const& connection,
                                          std::vector<std::string> const& pfs) {
    VFMGR_TRY(auto const all, read_all_firmware(connection));
    std::vector<std::string> cards;
    for (auto const& name : pfs) {
        VFMGR_TRY(auto const pci, resolve_pf(connection, name));
        auto card = to_string(pci);
        for (auto const& view : all)
            if (std::ranges::find(view.card.functions, pci) != view.card.functions.end())
                card = to_string(view.card.pci);
        if (std::ranges::find(cards, card) == cards.end()) cards.push_back(std::move(card));
    }
    return cards;
}

ApiRequest change(std::string const& card, FirmwareSettings const& settings) {
    return {.method = "PUT",
            .path = firmware_path(card),
            .body = nlohmann::json(FirmwareRequest{settings}).dump(),
            .timeout = firmware_time_max};
}

// Plans all cards before the first is changed: one refusal stops all.
Result<nlohmann::json> plan_all(Connection const& connection, std::vector<std::string> const& cards,
                                FirmwareSettings const& settings) {
    std::vector<nlohmann::json> dry_runs;
    for (auto const& card : cards) {
        auto request = change(card, settings);
        request.query["dry_run"] = "true";
        VFMGR_TRY(auto const response, connection.send(request));
        VFMGR_TRY(auto dry_run, json_of(response));
        dry_runs.push_back(std::move(dry_run));
    }
    return joined_plans(dry_runs);
}

Result<void> check_reboot(Options const& options) {
    VFMGR_TRY(auto const server, server_of(options));
    if (is_remote(server) || options.no_wait)
        return fail(Problem::invalid_request,
                    options.no_wait ? "--reboot has to wait until every card has its settings"
                                    : "--reboot is for the host that vfctl runs on",
                    options.no_wait ? "leave --no-wait out" : "run vfctl on that host");
    return require_drained(options);
}

// The last step, when all else is done. Checks once more that no VF was attached to a VM meanwhile.
Result<void> reboot(Options const& options) {
    VFMGR_CHECK(require_drained(options));
    print_sentence(
        "every card has its settings for the next reset, and no VM has a VF: rebooting this host",
        options);
    auto const asked = checks::run_command({"systemctl", "reboot"},
                                           std::chrono::steady_clock::now() + reboot_time_max);
    if (asked.error == 0 && asked.exit_status == 0) return {};
    Error error{Problem::unavailable, "systemctl reboot did not reboot this host",
                "reboot it by hand: the cards have their settings for the next reset"};
    if (asked.error != 0)
        error.causes.push_back(errno_cause("posix_spawn systemctl", asked.error));
    else
        error.causes.push_back({"systemctl reboot", "", asked.err});
    return fail(std::move(error));
}

bool any_unknown(std::vector<FirmwareView> const& cards) {
    return std::ranges::any_of(cards, [](auto const& card) { return !card.pending; });
}

bool any_waits(std::vector<FirmwareView> const& cards) {
    return std::ranges::any_of(cards, [](auto const& card) {
        return card.pending.value_or(FirmwarePending::none) != FirmwarePending::none;
    });
}

Result<void> print_pending(std::vector<FirmwareView> const& cards, Options const& options) {
    bool const pending = any_unknown(cards) || any_waits(cards);
    print_sentence(pending ? "pending reboot: the cards apply their settings at their next reset; "
                             "one reboot serves all"
                           : "every card already uses its settings: no reboot is needed",
                   options);
    return {};
}

// Refuses a card that does not report its current settings: a host that runs this at every boot
// could reboot forever.
Result<void> reboot_for(std::vector<FirmwareView> const& cards, Options const& options) {
    if (any_unknown(cards))
        return fail(Problem::unsupported,
                    "this host is not rebooted: a card, or its tool, does not report its current "
                    "settings, so nothing would end a loop of reboots",
                    "reboot it by hand; a newer mstflint may report them");
    if (any_waits(cards)) return reboot(options);
    return print_pending(cards, options);
}

Result<void> set_firmware(Options const& options, std::vector<std::string> const& words,
                          bool reboots) {
    VFMGR_TRY(auto const desired, firmware_words(words));
    VFMGR_CHECK(check_columns(options, card_table({})));
    if (reboots) VFMGR_CHECK(check_reboot(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const cards, cards_of(connection, desired.pfs));
    VFMGR_TRY(auto const planned, plan_all(connection, cards, desired.settings));
    if (options.dry_run) {
        VFMGR_TRY(auto const all, value_of<DryRun>({.body = planned.dump()}));
        return print(step_table(all.plan), plan_page(all.plan), planned.dump(), options);
    }
    for (auto const& card : cards) {
        VFMGR_TRY(auto const response, connection.send(change(card, desired.settings)));
        VFMGR_CHECK(settle(connection, options, response));
    }
    if (options.no_wait) return {};
    VFMGR_TRY(auto changed, read_all_firmware(connection));
    std::erase_if(changed, [&](FirmwareView const& view) {
        return std::ranges::find(cards, to_string(view.card.pci)) == cards.end();
    });
    VFMGR_CHECK(print(card_table(changed), nlohmann::json(ItemList<FirmwareView>{changed}).dump(),
                      options));
    return reboots ? reboot_for(changed, options) : print_pending(changed, options);
}

void add_set_firmware(CLI::App& firmware, Session& session) {
    auto const [command, words, reboots] =
        add_command(firmware, session, "set", "change settings on one or more cards with one plan",
                    set_firmware, std::vector<std::string>(), false);
    command->add_option("WORDS", words, "PF… NAME=VALUE…")->required();
    command->add_flag("--reboot", reboots,
                      "reboot this host when all cards have their settings and no VM has a VF");
}

}  // namespace

void add_firmware_commands(CLI::App& app, Session& session) {
    auto* const firmware =
        add_group(app, "firmware", "show and change firmware settings of ConnectX cards");
    add_command(*firmware, session, "list", "list the cards of the host", list_firmware);
    add_named(*firmware, session, "show",
              "show the settings of a PF's card: default, current, next", pf_by_any_name,
              show_firmware);
    add_set_firmware(*firmware, session);
}

}  // namespace vfmgr
