//! The layout that a user keeps from one time to the next: order of tables, units, what figures are, grouping. As text in TOML.

pub mod settings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::view::Grouping;
use crate::tui::state::{Amounts, State, TableId, TreeView};
use crate::tui::theme::Palette;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layout {
    amounts: Amounts,
    units: Units,
    only_active: bool,
    grouping: Grouping,
    nested: bool,
    tree: TreeView,
    #[serde(skip_serializing_if = "Option::is_none")]
    colours: Option<Palette>,
    sort: BTreeMap<TableId, Order>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum Units {
    #[default]
    KiB,
    #[serde(rename = "kB")]
    Kb,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    by: String,
    #[serde(default)]
    least_first: bool,
}

impl Layout {
    /// As it is now.
    pub fn of(state: &State) -> Self {
        let sort = state.tables.iter().filter_map(|(id, table)| {
            let now = table.sort.map(|(head, least_first)| (head.to_owned(), least_first));
            // What is still waiting for its column is kept.
            let (by, least_first) = now.or_else(|| table.wanted.clone())?;
            Some((*id, Order { by, least_first }))
        });
        Self {
            // A mark is of one trace.
            amounts: if state.amounts == Amounts::Since { Amounts::Totals } else { state.amounts },
            units: if state.pen.si { Units::Kb } else { Units::KiB },
            only_active: state.active_only,
            grouping: state.grouping,
            nested: state.nested,
            tree: state.tree,
            colours: state.palette,
            sort: sort.collect(),
        }
    }

    pub fn apply(self, state: &mut State) {
        state.amounts = if self.amounts == Amounts::Since { Amounts::Totals } else { self.amounts };
        state.pen.si = self.units == Units::Kb;
        state.active_only = self.only_active;
        state.grouping = self.grouping;
        state.nested = self.nested;
        state.tree = self.tree;
        state.palette = self.colours;
        // Where the environment wants none, there are none.
        if let Some(palette) = self.colours.filter(|_| state.pen.theme.palette != Palette::Mono) {
            state.pen.theme.palette = palette;
        }
        for (id, order) in self.sort {
            state.tables.entry(id).or_default().wanted = Some((order.by, order.least_first));
        }
    }

    pub fn text(&self) -> Result<String, String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        Ok(format!(
            "# The layout of the dashboard, written by its key w. Remove this file to have the usual one.\n{text}"
        ))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::{drawn, snapshot};
    use crate::tui::theme::Theme;

    fn changed() -> State {
        let mut state = State::new(Theme::default());
        state.pen.si = true;
        (state.amounts, state.active_only, state.grouping) = (Amounts::Totals, true, Grouping::Rank);
        (state.tree, state.nested, state.palette) = (TreeView::Flame, true, Some(Palette::Light));
        state.tables.entry(TableId::Files).or_default().sort = Some(("read", true));
        state
    }

    #[test]
    fn what_is_kept_comes_back() {
        let before = Layout::of(&changed());
        let text = before.text().unwrap();
        insta::assert_snapshot!(text, @r#"
        # The layout of the dashboard, written by its key w. Remove this file to have the usual one.
        amounts = "totals"
        units = "kB"
        only_active = true
        grouping = "rank"
        nested = true
        tree = "flame"
        colours = "light"

        [sort.files]
        by = "read"
        least_first = true
        "#);
        let mut state = State::new(Theme::default());
        Layout::parse(&text).unwrap().apply(&mut state);
        assert_eq!(Layout::of(&state), before, "also before the tables have been seen");
        state.screen = crate::summary::view::Screen::Files;
        drawn(&snapshot(), &mut state, 120, 40);
        assert_eq!(state.tables[&TableId::Files].sort, Some(("read", true)));
        assert_eq!(Layout::of(&state), before);
    }

    #[test]
    fn colours_that_are_kept_come_back_unless_the_environment_wants_none() {
        for (environment, expected) in [(Palette::Sixteen, Palette::Light), (Palette::Mono, Palette::Mono)] {
            let mut state = State::new(Theme { palette: environment, ascii: false });
            Layout::parse("colours = 'light'").unwrap().apply(&mut state);
            assert_eq!(state.pen.theme.palette, expected);
            assert_eq!(Layout::of(&state).colours, Some(Palette::Light), "w does not forget it");
        }
    }

    #[test]
    fn nothing_is_the_usual_layout_and_what_is_wrong_is_named() {
        assert_eq!(Layout::parse(""), Ok(Layout::of(&State::new(Theme::default()))));
        for (text, expected) in [
            ("units = 'stone'", "stone"),
            ("colour = 'red'", "colour"),
            ("[sort]\nfils = { by = 'read' }", "fils"),
            ("sort = 3", "map"),
            ("\u{0}", ""),
        ] {
            let why = Layout::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn a_column_that_there_is_not_sorts_nothing() {
        let mut state = State::new(Theme::default());
        state.screen = crate::summary::view::Screen::Files;
        Layout::parse("[sort]\nfiles = { by = 'no such column' }").unwrap().apply(&mut state);
        drawn(&snapshot(), &mut state, 120, 40);
        assert_eq!(state.tables[&TableId::Files].sort, None);
    }
}
