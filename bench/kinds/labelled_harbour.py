"""What a reader finds in the sample collection: entities, what relates them, and questions over two steps.

The twelve documents are those that `holdfast up` shows on its first start (`src/holdfast/cli/sample`). They
were labelled by reading them, before anything was run on them.
"""

PEOPLE = (
    *("Ingrid Solberg", "Edmund Hale", "Tomas Reyes", "Lena Brandt", "Amina Yusuf", "Piet van Dalen"),
    *("Joan Okafor", "Marek Nowak", "Greta Hask", "Oliver Finch", "Henrik Aas", "Rosa Lindqvist"),
    *("Paul Adeyemi", "Jonas Weber", "Fiona Baird"),
)
SHIPS = ("Petrel", "Albatross", "Meridian Star", "Hansa Linden", "Corrie", "Kittiwake")
ORGANISATIONS = (
    *("Port Wren", "Hask & Sons", "Baltic Mutual", "Northway Lines", "Meridian Shipping", "Firth Timber"),
    "harbour council",
)
PLACES = ("Gull Point", "Rotterdam", "Hamburg", "Bergen", "Inverness")
THINGS = (
    *("relay K4", "container MRSU 440182", "lift 1187", "claim 26-0417", "harbour handbook", "pilot rules"),
    "northern crane",
)
ENTITIES = (*PEOPLE, *SHIPS, *ORGANISATIONS, *PLACES, *THINGS)

RELATIONS = (
    ("Ingrid Solberg", "Port Wren"),
    ("Ingrid Solberg", "harbour council"),
    ("Edmund Hale", "harbour council"),
    ("Edmund Hale", "Ingrid Solberg"),
    ("Edmund Hale", "Joan Okafor"),
    ("Tomas Reyes", "Ingrid Solberg"),
    ("Tomas Reyes", "Port Wren"),
    ("Tomas Reyes", "lift 1187"),
    ("Tomas Reyes", "Piet van Dalen"),
    ("Tomas Reyes", "Petrel"),
    ("Tomas Reyes", "harbour handbook"),
    ("Lena Brandt", "Port Wren"),
    ("Lena Brandt", "Ingrid Solberg"),
    ("Lena Brandt", "Joan Okafor"),
    ("Amina Yusuf", "northern crane"),
    ("Amina Yusuf", "Piet van Dalen"),
    ("Piet van Dalen", "Port Wren"),
    ("Piet van Dalen", "relay K4"),
    ("Piet van Dalen", "lift 1187"),
    ("Piet van Dalen", "Greta Hask"),
    ("Joan Okafor", "Gull Point"),
    ("Joan Okafor", "Henrik Aas"),
    ("Joan Okafor", "pilot rules"),
    ("Joan Okafor", "Albatross"),
    ("Joan Okafor", "Meridian Star"),
    ("Joan Okafor", "Ingrid Solberg"),
    ("Marek Nowak", "Gull Point"),
    ("Marek Nowak", "Kittiwake"),
    ("Marek Nowak", "Hansa Linden"),
    ("Greta Hask", "Hask & Sons"),
    ("Greta Hask", "relay K4"),
    ("Hask & Sons", "Port Wren"),
    ("Hask & Sons", "northern crane"),
    ("Hask & Sons", "Ingrid Solberg"),
    ("Oliver Finch", "Baltic Mutual"),
    ("Oliver Finch", "Ingrid Solberg"),
    ("Baltic Mutual", "Port Wren"),
    ("Baltic Mutual", "Meridian Shipping"),
    ("Baltic Mutual", "container MRSU 440182"),
    ("Baltic Mutual", "claim 26-0417"),
    ("Baltic Mutual", "Hask & Sons"),
    ("Henrik Aas", "Petrel"),
    ("Henrik Aas", "Port Wren"),
    ("Henrik Aas", "Tomas Reyes"),
    ("Petrel", "Northway Lines"),
    ("Petrel", "Bergen"),
    ("Northway Lines", "Port Wren"),
    ("Northway Lines", "harbour council"),
    ("Albatross", "Meridian Shipping"),
    ("Albatross", "Rosa Lindqvist"),
    ("Albatross", "Rotterdam"),
    ("Albatross", "container MRSU 440182"),
    ("Meridian Star", "Meridian Shipping"),
    ("Meridian Star", "Paul Adeyemi"),
    ("Meridian Star", "Rotterdam"),
    ("Hansa Linden", "Meridian Shipping"),
    ("Hansa Linden", "Jonas Weber"),
    ("Corrie", "Firth Timber"),
    ("Corrie", "Fiona Baird"),
    ("Kittiwake", "Port Wren"),
)

# A question, the entity that it names, the one in between, and the answer.
QUESTIONS = (
    ("Who commands the ferry of Northway Lines?", "Northway Lines", "Petrel", "Henrik Aas"),
    ("What is the home port of the ferry of Northway Lines?", "Northway Lines", "Petrel", "Bergen"),
    ("Who is master of the ship that Firth Timber operates?", "Firth Timber", "Corrie", "Fiona Baird"),
    ("Where is the ship of Firth Timber at home?", "Firth Timber", "Corrie", "Inverness"),
    (
        "Which operator does the ship of Rosa Lindqvist belong to?",
        "Rosa Lindqvist",
        "Albatross",
        "Meridian Shipping",
    ),
    (
        "Which operator does the ship of Paul Adeyemi belong to?",
        "Paul Adeyemi",
        "Meridian Star",
        "Meridian Shipping",
    ),
    (
        "Which operator does the ship of Jonas Weber belong to?",
        "Jonas Weber",
        "Hansa Linden",
        "Meridian Shipping",
    ),
    ("Which operator does the ship of Henrik Aas belong to?", "Henrik Aas", "Petrel", "Northway Lines"),
    ("Where is the ship of Rosa Lindqvist at home?", "Rosa Lindqvist", "Albatross", "Rotterdam"),
    ("Where is the ship of Jonas Weber at home?", "Jonas Weber", "Hansa Linden", "Hamburg"),
    ("Who brought the ship of Jonas Weber in?", "Jonas Weber", "Hansa Linden", "Marek Nowak"),
    ("Who brought the ship of Rosa Lindqvist in?", "Rosa Lindqvist", "Albatross", "Joan Okafor"),
    (
        "Which firm does the inspector who replaced relay K4 work for?",
        "relay K4",
        "Greta Hask",
        "Hask & Sons",
    ),
    (
        "Who keeps the log of the station from which Marek Nowak works?",
        "Marek Nowak",
        "Gull Point",
        "Joan Okafor",
    ),
    ("Who granted the master of the Petrel his exemption?", "Petrel", "Henrik Aas", "Joan Okafor"),
    (
        "Which insurer does the man who closed claim 26-0417 work for?",
        "claim 26-0417",
        "Oliver Finch",
        "Baltic Mutual",
    ),
    (
        "Which shipping company lost the container of the Albatross?",
        "Albatross",
        "Baltic Mutual",
        "Meridian Shipping",
    ),
    (
        "Who replaced the relay with the inspector of Hask & Sons?",
        "Hask & Sons",
        "Greta Hask",
        "Piet van Dalen",
    ),
    (
        "Who chairs the body that the harbour master answers to?",
        "Ingrid Solberg",
        "harbour council",
        "Edmund Hale",
    ),
    (
        "Who stood by the shift leader of the night at lift 1187?",
        "lift 1187",
        "Tomas Reyes",
        "Piet van Dalen",
    ),
)
