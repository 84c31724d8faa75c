//! The words of a text, as search compares them. All homes use the same words, so that a search finds the same items in
//! every home.
//!
//! ```text
//!   "Ｈｅｌｌｏ, 王小明!"  ─▶  hello · 王 小 明          a word by itself · three characters next to each other
//! ```
//!
//! - A text is brought to one form first: NFKC, lower case, no variation selectors.
//! - Words are the words of Unicode (UAX 29) that hold a letter or a digit. Emoji and punctuation are no words.
//! - Each character of Han, Hiragana, Katakana or Hangul is a word by itself, since such text has no spaces that would
//!   tell where a word ends. Characters with nothing between them are *joined*, and a phrase of joined ones is found
//!   only where they are joined too: 小明 in 王小明, and not in 小 明.

use compact_str::CompactString;
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case, or one character.
    pub text: CompactString,
    /// Whether the word is a single character that follows another such character with nothing between them.
    pub joined: bool,
}

/// Words that stand next to each other in this order: a word alone, or joined characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase(Vec<CompactString>);

impl Phrase {
    /// Whether the phrase occurs in these words.
    pub fn is_in(&self, words: &[Word]) -> bool {
        let Self(phrase) = self;
        words.windows(phrase.len()).any(|some| {
            some.iter().zip(phrase).all(|(word, wanted)| word.text == *wanted)
                && some[1..].iter().all(|word| word.joined)
        })
    }

    /// The words of the phrase.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(CompactString::as_str)
    }
}

/// The words of a text in their order, at most `limit`.
pub fn words(text: &str, limit: usize) -> Vec<Word> {
    let plain: String = text.nfkc().filter(|c| !is_variation(*c)).flat_map(char::to_lowercase).collect();
    let (mut words, mut end) = (Vec::new(), None);
    for (at, segment) in plain.unicode_word_indices() {
        // A segment may hold words of both kinds, such as characters of Katakana around an underscore.
        let mut rest = segment;
        while let Some(first) = rest.chars().next() {
            if words.len() == limit {
                return words;
            }
            let at = at + (segment.len() - rest.len());
            let length = match is_single(first) {
                true => first.len_utf8(),
                false => rest.find(is_single).unwrap_or(rest.len()),
            };
            let (word, behind) = rest.split_at(length);
            rest = behind;
            if is_single(first) {
                words.push(Word { text: word.into(), joined: end == Some(at) });
                end = Some(at + length);
            } else if word.chars().any(char::is_alphanumeric) {
                words.push(Word { text: word.into(), joined: false });
            }
        }
    }
    words
}

/// What is looked for by `text`: each word alone, and each run of joined characters as one phrase.
pub fn phrases(text: &str) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = vec![];
    for word in words(text, usize::MAX) {
        match phrases.last_mut() {
            Some(Phrase(last)) if word.joined => last.push(word.text),
            _ => phrases.push(Phrase(vec![word.text])),
        }
    }
    phrases
}

/// Whether this character is a word by itself. The character ー makes a vowel of Hiragana or Katakana long; Unicode
/// counts it to neither script.
fn is_single(c: char) -> bool {
    let of_script = || matches!(c.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul);
    c == 'ー' || (!c.is_ascii() && c.is_alphanumeric() && of_script())
}

/// Whether this character is a variation selector, which only says how the character before it is drawn.
fn is_variation(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words of a text, with + before one that is joined.
    fn of(text: &str) -> String {
        let word = |word: &Word| format!("{}{}", if word.joined { "+" } else { "" }, word.text);
        words(text, usize::MAX).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    fn finds(text: &str, wanted: &str) -> bool {
        let (words, phrases) = (words(text, usize::MAX), phrases(wanted));
        assert!(!phrases.is_empty(), "{wanted}");
        phrases.iter().all(|phrase| phrase.is_in(&words))
    }

    #[test]
    fn s14_words_are_those_of_unicode_in_lower_case() {
        assert_eq!(of("Hello, WORLD! don't 3.14 👍 ÀÉ"), "hello world don't 3.14 àé");
        assert_eq!(of("… — 👩‍👩‍👧 !"), "");
        assert_eq!(of("Привет مرحبا"), "привет مرحبا");
    }

    #[test]
    fn s14_each_character_of_chinese_japanese_and_korean_is_a_word_by_itself() {
        assert_eq!(of("王小明"), "王 +小 +明");
        assert_eq!(of("東京タワーへ"), "東 +京 +タ +ワ +ー +へ");
        assert_eq!(of("안녕 세계"), "안 +녕 세 +계");
        assert_eq!(of("小，明 iPhone手机5"), "小 明 iphone 手 +机 5");
        assert_eq!(of("人々 タ_ワ"), "人 +々 タ ワ");
    }

    #[test]
    fn s14_what_looks_the_same_is_the_same() {
        assert_eq!(of("Ｈｅｌｌｏ ﾀﾜｰ ガ"), of("hello タワー ガ"));
        assert_eq!(of("e\u{301}te\u{301} か\u{3099}"), of("ÉTÉ が"));
        assert_eq!(of("葛\u{e0100}飾"), of("葛飾"));
    }

    #[test]
    fn s14_a_phrase_is_found_where_its_characters_are_joined() {
        assert!(finds("我是王小明。", "小明") && finds("我是王小明。", "王小明") && finds("王小明", "明"));
        assert!(!finds("小 明", "小明") && !finds("小，明", "小明") && !finds("明小", "小明"));
        assert!(finds("明 and 小", "小 明"), "two phrases, in any order");
        assert!(finds("Big red bus", "BUS big") && !finds("Big red bus", "bus blue"));
        assert!(!finds("redder", "red"), "a word is not a part of another");
    }

    #[test]
    fn a_text_has_so_many_words_and_no_more() {
        assert_eq!(words("a b 小明 c", 3).len(), 3);
        assert_eq!(words("a", 0), vec![]);
    }

    proptest! {
        #[test]
        fn s14_every_part_of_a_run_of_characters_is_found_in_it(run in "[王小明東京タワーあ안녕]{1,12}", from: usize, to: usize) {
            let characters: Vec<char> = run.chars().collect();
            let (a, b) = (from % characters.len(), to % characters.len());
            let part: String = characters[a.min(b)..=a.max(b)].iter().collect();
            let text = format!("x {run}, y");
            prop_assert!(finds(&text, &part));
        }

        #[test]
        fn any_text_is_found_by_itself(text in ".{0,60}") {
            let words = words(&text, usize::MAX);
            prop_assert!(phrases(&text).iter().all(|phrase| phrase.is_in(&words)));
        }
    }
}
