"""The works that methods cite, as a text, a list of references and BibTeX name them."""

from __future__ import annotations

from dataclasses import dataclass

PLACE = {"inproceedings": "booktitle", "article": "journal", "book": "publisher", "misc": "howpublished"}
"""The field of BibTeX that says where each kind of work was published."""


@dataclass(frozen=True, slots=True)
class Work:
    """A paper or a book."""

    key: str
    kind: str
    """One of :data:`PLACE`."""
    authors: tuple[str, ...]
    title: str
    place: str
    year: int
    arxiv: str = ""

    @property
    def short(self) -> str:
        """In a sentence: ``Lee and Kifer, 2021``, ``Bu et al., 2023``."""
        names = [author.rpartition(" ")[2] for author in self.authors]
        return f"{' and '.join(names) if len(names) < 3 else f'{names[0]} et al.'}, {self.year}"

    @property
    def text(self) -> str:
        """Authors, title, place and year."""
        return f"{', '.join(self.authors)}. {self.title}. {self.place}, {self.year}."

    def __str__(self) -> str:
        """As in a list of references."""
        return f"{self.text} arXiv:{self.arxiv}." if self.arxiv else self.text


ABADI = Work(
    "abadi2016deep",
    "inproceedings",
    (
        *("Martín Abadi", "Andy Chu", "Ian Goodfellow", "H. Brendan McMahan", "Ilya Mironov"),
        *("Kunal Talwar", "Li Zhang"),
    ),
    "Deep Learning with Differential Privacy",
    "ACM Conference on Computer and Communications Security (CCS)",
    2016,
    "1607.00133",
)
LEE = Work(
    "lee2021scaling",
    "article",
    ("Jaewoo Lee", "Daniel Kifer"),
    "Scaling up Differentially Private Deep Learning with Fast Per-Example Gradient Clipping",
    "Proceedings on Privacy Enhancing Technologies",
    2021,
    "2009.03106",
)
SUBRAMANI = Work(
    "subramani2021enabling",
    "inproceedings",
    ("Pranav Subramani", "Nicholas Vadivelu", "Gautam Kamath"),
    "Enabling Fast Differentially Private SGD via Just-in-Time Compilation and Vectorization",
    "Advances in Neural Information Processing Systems (NeurIPS)",
    2021,
    "2010.09063",
)
YOUSEFPOUR = Work(
    "yousefpour2021opacus",
    "misc",
    (
        *("Ashkan Yousefpour", "Igor Shilov", "Alexandre Sablayrolles", "Davide Testuggine", "Karthik Prasad"),
        *("Mani Malek", "John Nguyen", "Sayan Ghosh", "Akash Bharadwaj", "Jessica Zhao", "Graham Cormode"),
        "Ilya Mironov",
    ),
    "Opacus: User-Friendly Differential Privacy Library in PyTorch",
    "arXiv preprint",
    2021,
    "2109.12298",
)
LI = Work(
    "li2022large",
    "inproceedings",
    ("Xuechen Li", "Florian Tramèr", "Percy Liang", "Tatsunori Hashimoto"),
    "Large Language Models Can Be Strong Differentially Private Learners",
    "International Conference on Learning Representations (ICLR)",
    2022,
    "2110.05679",
)
BU_2022 = Work(
    "bu2022scalable",
    "inproceedings",
    ("Zhiqi Bu", "Jialin Mao", "Shiyun Xu"),
    "Scalable and Efficient Training of Large Convolutional Neural Networks with Differential Privacy",
    "Advances in Neural Information Processing Systems (NeurIPS)",
    2022,
    "2205.10683",
)
BU_2023 = Work(
    "bu2023differentially",
    "inproceedings",
    ("Zhiqi Bu", "Yu-Xiang Wang", "Sheng Zha", "George Karypis"),
    "Differentially Private Optimization on Large Model at Small Cost",
    "International Conference on Machine Learning (ICML)",
    2023,
    "2210.00038",
)
EFRON = Work(
    "efron1993introduction",
    "book",
    ("Bradley Efron", "Robert J. Tibshirani"),
    "An Introduction to the Bootstrap",
    "Chapman & Hall",
    1993,
)
HESTERBERG = Work(
    "hesterberg2015teachers",
    "article",
    ("Tim C. Hesterberg",),
    "What Teachers Should Know About the Bootstrap: Resampling in the Undergraduate Statistics Curriculum",
    "The American Statistician",
    2015,
    "1411.5279",
)
WILLIAMS = Work(
    "williams2009roofline",
    "article",
    ("Samuel Williams", "Andrew Waterman", "David Patterson"),
    "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
    "Communications of the ACM",
    2009,
)

WORKS = (EFRON, WILLIAMS, HESTERBERG, ABADI, LEE, SUBRAMANI, YOUSEFPOUR, BU_2022, LI, BU_2023)
"""All, by year."""
